"""Addresses of webhook messages."""

from django.urls import path

from portal.messaging import views

app_name = "messaging"
urlpatterns = [
    path("", views.index, name="index"),
    path("export/", views.export, name="export"),
    path("check/", views.check, name="check"),
    path("sync/", views.sync, name="sync"),
    path("<str:message_uuid>/", views.detail, name="detail"),
    path("<str:message_uuid>/json/", views.json, name="json"),
    path("<str:message_uuid>/note/", views.note, name="note"),
    path("<str:message_uuid>/link/", views.link, name="link"),
]
