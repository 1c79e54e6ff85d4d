"""Addresses of loans: the list across borrowers, one loan, and its schedule as a file."""

from django.urls import path

from portal.loans import views
from portal.loans.list_page import LOANS
from portal.tables.addresses import list_addresses

app_name = "loans"
LOAN = "borrowers/<str:borrower_uuid>/loans/<str:loan_uuid>/"
urlpatterns = [
    *list_addresses(LOANS, "loans/"),
    path(LOAN, views.detail, name="detail"),
    path(f"{LOAN}schedule.csv", views.schedule, name="schedule"),
]
