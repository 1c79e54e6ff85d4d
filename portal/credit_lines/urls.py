"""Addresses of lines of credit: the list across borrowers, one line of a borrower, the documents of its statements."""

from django.urls import path

from portal.credit_lines import views

app_name = "credit_lines"
LINE = "borrowers/<str:borrower_uuid>/lines/<str:line_uuid>/"
urlpatterns = [
    path("lines/", views.index, name="index"),
    path("lines/export.csv", views.export, name="export"),
    path("lines/refresh/", views.refresh, name="refresh"),
    path(LINE, views.detail, name="detail"),
    path(f"{LINE}statements/<str:day>/pdf/", views.pdf, name="pdf"),
]
