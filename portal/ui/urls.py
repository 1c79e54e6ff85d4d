"""The component page, living documentation of the interface; the project includes it only in DEBUG."""

from django.urls import path

from portal.ui import views

app_name = "ui"
urlpatterns = [path("", views.components, name="components")]
