"""Addresses of editing a borrower and a key person; every step of an edit has the same one."""

from django.urls import path

from portal.borrowers import edit_views

urlpatterns = [
    path("<str:borrower_uuid>/edit/", edit_views.edit, name="edit"),
    path("<str:borrower_uuid>/people/<str:person_uuid>/edit/", edit_views.edit_person, name="edit_person"),
]
