"""Addresses of the audit trail and of single writes."""

from django.urls import path

from portal.audit import views

app_name = "audit"
urlpatterns = [
    path("", views.index, name="index"),
    path("writes/<uuid:intent_id>/", views.write, name="write"),
]
