"""The first page, and putting lines of its list aside."""

from django.urls import path

from portal.home import views

app_name = "home"
urlpatterns = [
    path("", views.index, name="index"),
    path("attention/snooze/", views.snooze, name="snooze"),
    path("attention/wake/", views.wake, name="wake"),
]
