"""Addresses of repayments."""

from django.urls import path

from portal.repayments import views

app_name = "repayments"
urlpatterns = [path("", views.index, name="index")]
