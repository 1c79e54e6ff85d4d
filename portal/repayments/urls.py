"""Addresses of repayments: the list across borrowers, its file, one repayment."""

from django.urls import path

from portal.repayments import views
from portal.repayments.list_page import REPAYMENTS
from portal.tables.addresses import list_addresses

app_name = "repayments"
urlpatterns = [
    *list_addresses(REPAYMENTS, "", index=views.index),
    path("<str:repayment_uuid>/", views.detail, name="detail"),
]
