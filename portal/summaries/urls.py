"""Addresses of printed summaries, below those of borrowers."""

from django.urls import path

from portal.summaries import views

app_name = "summaries"
urlpatterns = [
    path("<str:borrower_uuid>/summary/", views.borrower, name="borrower"),
    path("<str:borrower_uuid>/summary.pdf", views.pdf, name="pdf"),
]
