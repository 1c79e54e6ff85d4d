"""Addresses of applications."""

from django.urls import path

from portal.applications import views

app_name = "applications"
urlpatterns = [path("", views.index, name="index")]
