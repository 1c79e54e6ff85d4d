"""Addresses of a person's own pages."""

from django.urls import path

from portal.accounts import views

app_name = "accounts"
urlpatterns = [
    path("profile/", views.profile, name="profile"),
    path("profile/theme/", views.theme, name="theme"),
    path("without-scripts/", views.without_scripts, name="without_scripts"),
    path("session/", views.session, name="session"),
    path("sessions/", views.sessions, name="sessions"),
    path("sessions/end/", views.end_sessions, name="end_sessions"),
    path("resume/", views.resume, name="resume"),
]
