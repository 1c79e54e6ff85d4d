"""Addresses of saved views."""

from django.urls import path

from portal.tables import views

app_name = "saved_views"
urlpatterns = [
    path("save/", views.save, name="save"),
    path("<int:view_id>/delete/", views.delete, name="delete"),
]
