"""Addresses of documents: each as a preview and, under the same name with ``_pdf``, as the PDF itself."""

from collections.abc import Callable

from django.http import HttpResponse
from django.urls import URLPattern, path

from portal.summaries import views

app_name = "summaries"
BORROWER = "borrowers/<str:borrower_uuid>/"


def both(address: str, view: Callable[..., HttpResponse]) -> list[URLPattern]:
    """The preview and the PDF of one kind of document."""
    name = view.__name__
    return [
        path(f"{address}/", view, name=name),
        path(f"{address}.pdf", view, {"as_pdf": True}, name=f"{name}_pdf"),
    ]


urlpatterns = [
    *both(f"{BORROWER}summary", views.borrower),
    *both(f"{BORROWER}loans/<str:loan_uuid>/schedule", views.loan_schedule),
    *both(f"{BORROWER}lines/<str:line_uuid>/summary", views.line),
    *both(f"{BORROWER}applications/<str:application_uuid>/offer-sheet", views.offer_sheet),
    *both(f"{BORROWER}statement-of-account", views.statement_of_account),
    *both("repayments/statement-of-account", views.statement_of_account),
]
