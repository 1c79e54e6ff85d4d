"""Addresses of loans: the list across borrowers, one loan of a borrower, its schedule as a file."""

from django.urls import path

from portal.loans import views

app_name = "loans"
LOAN = "borrowers/<str:borrower_uuid>/loans/<str:loan_uuid>/"
urlpatterns = [
    path("loans/", views.index, name="index"),
    path("loans/export.csv", views.export, name="export"),
    path("loans/refresh/", views.refresh, name="refresh"),
    path(LOAN, views.detail, name="detail"),
    path(f"{LOAN}schedule.csv", views.schedule, name="schedule"),
]
