"""Addresses of repayments: the list across borrowers, its file, one repayment."""

from django.urls import path

from portal.lists.addresses import list_addresses
from portal.repayments import views
from portal.repayments.list_page import REPAYMENTS

app_name = "repayments"
urlpatterns = [
    *list_addresses(REPAYMENTS, "", index=views.index),
    path("<str:repayment_uuid>/", views.detail, name="detail"),
]
