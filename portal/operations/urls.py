"""Addresses of the integration status and of the platform's health check."""

from django.urls import path

from portal.operations import views

app_name = "operations"
urlpatterns = [
    path("status/", views.status, name="status"),
    path("jobs/<uuid:job_id>/", views.job, name="job"),
    path("jobs/<uuid:job_id>/cancel/", views.cancel, name="cancel"),
    path("healthz", views.healthz, name="healthz"),
]
