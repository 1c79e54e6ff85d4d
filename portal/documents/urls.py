"""Addresses of documents (a preview, and a PDF under the same name with ``_pdf``), verification and batches."""

from collections.abc import Callable

from django.http import HttpResponseBase
from django.urls import URLPattern, path

from portal.documents import batch_views, views

app_name = "documents"
BORROWER = "borrowers/<str:borrower_uuid>/"


def preview_and_pdf(address: str, view: Callable[..., HttpResponseBase]) -> list[URLPattern]:
    name = view.__name__
    return [
        path(f"{address}/", view, name=name),
        path(f"{address}.pdf", view, {"as_pdf": True}, name=f"{name}_pdf"),
    ]


urlpatterns = [
    *preview_and_pdf(f"{BORROWER}summary", views.borrower),
    *preview_and_pdf(f"{BORROWER}loans/<str:loan_uuid>/schedule", views.loan_schedule),
    *preview_and_pdf(f"{BORROWER}lines/<str:line_uuid>/summary", views.line),
    *preview_and_pdf(f"{BORROWER}applications/<str:application_uuid>/offer-sheet", views.offer_sheet),
    *preview_and_pdf(f"{BORROWER}statement-of-account", views.payment_history),
    *preview_and_pdf("repayments/statement-of-account", views.payment_history),
    *preview_and_pdf("portfolio/print", views.portfolio),
    path("documents/<uuid:document_id>/", views.long_document, name="long_document"),
    path("documents/<uuid:document_id>/download/", views.long_download, name="long_download"),
    path("verify/", views.verify, name="verify_any"),
    path("verify/<str:code>/", views.verify, name="verify"),
    path("summaries/batches/", batch_views.create, name="batch_new"),
    path("summaries/batches/<uuid:batch_id>/", batch_views.batch, name="batch"),
    path("summaries/batches/<uuid:batch_id>/download/", batch_views.download, name="batch_download"),
]
