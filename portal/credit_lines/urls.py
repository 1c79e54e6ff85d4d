"""Addresses of lines of credit: the list across borrowers, one line, and its statement documents."""

from django.urls import path

from portal.credit_lines import views
from portal.credit_lines.list_page import LINES
from portal.tables.addresses import list_addresses

app_name = "credit_lines"
LINE = "borrowers/<str:borrower_uuid>/lines/<str:line_uuid>/"
urlpatterns = [
    *list_addresses(LINES, "lines/"),
    path(LINE, views.detail, name="detail"),
    path(f"{LINE}statements/<str:key>/pdf/", views.pdf, name="pdf"),
]
