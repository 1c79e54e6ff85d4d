"""Addresses of borrowers: list, onboarding, page."""

from django.urls import path

from portal.borrowers import edit_urls, page, views, wizard_urls

app_name = "borrowers"
urlpatterns = [
    path("", views.index, name="index"),
    path("export/", views.export, name="export"),
    *wizard_urls.urlpatterns,
    *edit_urls.urlpatterns,
    path("<str:borrower_uuid>/", page.detail, name="detail"),
]
