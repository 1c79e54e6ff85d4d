"""Addresses of the status page, background jobs and the platform's health checks."""

from django.urls import path

from portal.operations import first_day, views

app_name = "operations"
urlpatterns = [
    path("status/", views.status, name="status"),
    path("jobs/<uuid:job_id>/", views.job, name="job"),
    path("jobs/<uuid:job_id>/cancel/", views.cancel, name="cancel"),
    path("status/first-day/", first_day.page, name="first_day"),
    path("status/support-bundle/", views.support_bundle, name="support_bundle"),
    path("logo", views.logo_file, name="logo"),
    path("favicon.ico", views.favicon, name="favicon"),
    path("readyz", views.readyz, name="readyz"),
    path("metrics", views.metrics, name="metrics"),
    path("healthz", views.healthz, name="healthz"),
]
