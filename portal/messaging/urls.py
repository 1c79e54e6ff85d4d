"""Addresses of webhook messages."""

from django.urls import path

from portal.messaging import views

app_name = "messaging"
urlpatterns = [
    path("", views.index, name="index"),
    path("<str:message_uuid>/", views.detail, name="detail"),
]
