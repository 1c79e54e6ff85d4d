"""Addresses of the book on a day and of the accounts behind it."""

from django.urls import path

from portal.portfolio import views

app_name = "portfolio"
urlpatterns = [
    path("", views.index, name="index"),
    path("export/", views.export, name="export"),
    path("demo-past/", views.demo_past, name="demo_past"),
    path("accounts/", views.accounts, name="accounts"),
    path("payments/", views.payments, name="payments"),
    path("payments/export/", views.export_payments, name="export_payments"),
    path("accounts/export/", views.export_accounts, name="export_accounts"),
]
