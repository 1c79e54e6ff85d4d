"""Addresses of loans."""

from django.urls import path

from portal.loans import views

app_name = "loans"
urlpatterns = [path("", views.index, name="index")]
