"""The first page."""

from django.urls import path

from portal.home import views

app_name = "home"
urlpatterns = [path("", views.index, name="index")]
