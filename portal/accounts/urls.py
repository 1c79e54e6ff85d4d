"""A person's own page."""

from django.urls import path

from portal.accounts import views

app_name = "accounts"
urlpatterns = [
    path("profile/", views.profile, name="profile"),
    path("profile/theme/", views.theme, name="theme"),
]
