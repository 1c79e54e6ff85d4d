"""Addresses of the home page, its sections, and Help."""

from django.urls import include, path

from portal.home import views

app_name = "home"
help_patterns = [
    path("", views.show_help, name="index"),
    path("<slug:address>/", views.show_help, name="page"),
]
urlpatterns = [
    path("", views.index, name="index"),
    path("help/", include((help_patterns, "help"))),
    path("attention/waiting/", views.waiting, name="waiting"),
    path("attention/snooze/", views.snooze, name="snooze"),
    path("attention/wake/", views.wake, name="wake"),
]
