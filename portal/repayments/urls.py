"""Addresses of repayments: the list across borrowers, its file, one repayment."""

from django.urls import path

from portal.repayments import views

app_name = "repayments"
urlpatterns = [
    path("", views.index, name="index"),
    path("export.csv", views.export, name="export"),
    path("<str:repayment_uuid>/", views.detail, name="detail"),
]
