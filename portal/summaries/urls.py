"""Addresses of documents (each as a preview and, under its name with ``_pdf``, as the PDF), of checks and batches."""

from collections.abc import Callable

from django.http import HttpResponse
from django.urls import URLPattern, path

from portal.summaries import batch_views, checking, views

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
    path("documents/<uuid:document_id>/", views.long_document, name="long_document"),
    path("documents/<uuid:document_id>/download/", views.long_download, name="long_download"),
    path("verify/", checking.verify, name="verify_any"),
    path("verify/<str:code>/", checking.verify, name="verify"),
    path("summaries/batches/", batch_views.create, name="batch_new"),
    path("summaries/batches/<uuid:batch_id>/", batch_views.batch, name="batch"),
    path("summaries/batches/<uuid:batch_id>/download/", batch_views.download, name="batch_download"),
]
