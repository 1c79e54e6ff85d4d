"""The address of the component page, the living documentation of the interface; included only under DEBUG."""

from django.urls import path

from portal.ui import views

app_name = "ui"
urlpatterns = [path("", views.components, name="components")]
