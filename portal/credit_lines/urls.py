"""Addresses of lines of credit."""

from django.urls import path

from portal.credit_lines import views

app_name = "credit_lines"
urlpatterns = [path("", views.index, name="index")]
