"""Addresses of changes that need a second person."""

from django.urls import path

from portal.approvals import views

app_name = "approvals"
urlpatterns = [
    path("", views.index, name="index"),
    path("<uuid:approval_id>/", views.detail, name="detail"),
    path("<uuid:approval_id>/decide/", views.decide, name="decide"),
    path("<uuid:approval_id>/withdraw/", views.withdraw, name="withdraw"),
]
