"""Addresses of applications: the list, and those of each borrower."""

from django.urls import include, path

from portal.applications import page, submit
from portal.applications.list_page import APPLICATIONS
from portal.tables.addresses import list_addresses

app_name = "applications"
of_borrower = [
    path("new/", submit.submit, name="submit"),
    path("open/", submit.open_existing, name="open"),
    path("<str:application_uuid>/", page.detail, name="detail"),
    path("<str:application_uuid>/offers/", page.export_offers, name="export_offers"),
    path("<str:application_uuid>/prefer/", page.prefer, name="prefer"),
    path("<str:application_uuid>/follow/", page.follow, name="follow"),
]
urlpatterns = [
    *list_addresses(APPLICATIONS, "applications/", file="export/"),
    path("borrowers/<str:borrower_uuid>/applications/", include(of_borrower)),
]
