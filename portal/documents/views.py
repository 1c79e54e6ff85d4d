"""Printed documents: the preview and the PDF render the same template from the same content."""

import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from http import HTTPStatus
from typing import Any
from uuid import UUID

from django.core.files.uploadedfile import UploadedFile
from django.db.models import Q
from django.http import HttpResponse, HttpResponseBase, HttpResponseNotAllowed
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.views.decorators.http import require_http_methods, require_safe

from portal.accounts.roles import requires
from portal.applications.offers import OfferView
from portal.audit.chain import append, same_subject
from portal.audit.models import Actor
from portal.audit.view_log import log_page, log_subject, log_view
from portal.core.business_date import business_date
from portal.documents import borrower_summary, tasks
from portal.documents import line_of_credit as line_paper
from portal.documents import loan_schedule as loan_paper
from portal.documents import offer_sheet as offer_paper
from portal.documents import payment_history as history_paper
from portal.documents import portfolio as portfolio_paper
from portal.documents.document import (
    LAYOUT_ERRORS,
    Document,
    Stamp,
    open_document,
    print_entry,
    read_copies,
    record_print,
    start_long_document,
)
from portal.documents.models import LongDocument, Printed
from portal.documents.options import CHOICES, FIELDS, Mode, Options
from portal.documents.pdf import NotRendered, TookTooLong, render
from portal.gateway.client import StaffRequest
from portal.gateway.failures import error_page
from portal.gateway.panels import Freshness, panel_copies
from portal.gateway.reading import MAX_LIVE_ACCOUNTS, LiveCopy, repayment_copies
from portal.portfolio.page import known_page
from portal.records.models import Account, Application, Borrower, Kind
from portal.records.sources import REPAYMENTS_OF
from portal.ui.exports import file_headers
from portal.ui.htmx import finish_action, render_page
from portal.ui.uploads import accepts_files

logger = logging.getLogger(__name__)

PANEL = "document"
# What takes longer than this is created by a job, so that a request never waits for it.
REQUEST_SECONDS = 5


def document_view(build: Callable[..., Document]) -> Callable[..., HttpResponseBase]:
    """Turn a function that builds a document into a view of its preview or, with ``as_pdf``, its PDF."""

    @require_safe
    @wraps(build)
    def view(request: StaffRequest, *, as_pdf: bool = False, **ids: str) -> HttpResponseBase:
        if as_pdf and request.method == "HEAD":  # It would be printed for nobody.
            return HttpResponseNotAllowed(["GET"])
        try:
            document = build(request, as_pdf, **ids)
            return _create_pdf(request, document) if as_pdf else _preview(request, document)
        except LAYOUT_ERRORS as error:
            logger.exception("A document couldn’t be created.")
            context = {"problem": type(error).__name__}
            return error_page(request, "documents/broken.html", HTTPStatus.UNPROCESSABLE_ENTITY, context)

    return view


@requires("summaries.borrower")
@document_view
def borrower(request: StaffRequest, as_pdf: bool, borrower_uuid: str) -> Document:
    record = get_object_or_404(Borrower.objects.select_related("answer"), uuid=borrower_uuid)
    options = Options.of(request.GET)
    copies = _read(request, borrower_summary.account_copies_of(record), options, as_pdf)
    return borrower_summary.document(record, copies, options, today=business_date())


@requires("summaries.document")
@document_view
def loan_schedule(request: StaffRequest, as_pdf: bool, borrower_uuid: str, loan_uuid: str) -> Document:
    record = get_object_or_404(
        Account.objects.select_related("answer"), kind=Kind.LOAN, uuid=loan_uuid, borrower_uuid=borrower_uuid
    )
    options = Options.of(request.GET, mode=Mode.BORROWER)
    (copy,) = _read(request, [LiveCopy(record)], options, as_pdf)
    (listed,) = repayment_copies([record])
    return loan_paper.document(copy, listed.repayments, _owner(record), options, today=business_date())


@requires("summaries.document")
@document_view
def line(request: StaffRequest, as_pdf: bool, borrower_uuid: str, line_uuid: str) -> Document:
    record = get_object_or_404(
        Account.objects.select_related("answer"), kind=Kind.LINE, uuid=line_uuid, borrower_uuid=borrower_uuid
    )
    options = Options.of(request.GET, mode=Mode.BORROWER)
    copy, repayments = _read(request, [LiveCopy(record), *repayment_copies([record])], options, as_pdf)
    return line_paper.document(copy, repayments, _owner(record), options, today=business_date())


@requires("summaries.document")
@document_view
def offer_sheet(request: StaffRequest, as_pdf: bool, borrower_uuid: str, application_uuid: str) -> Document:
    record = get_object_or_404(
        Application.objects.select_related("answer"), uuid=application_uuid, borrower_uuid=borrower_uuid
    )
    options = Options.of(request.GET, mode=Mode.BORROWER, can_refresh=record.can_be_read)
    (copy,) = _read(request, [LiveCopy(record)], options, as_pdf)
    return offer_paper.document(copy, _owner(record), options, OfferView.of(request.GET))


@requires("summaries.document")
@document_view
def payment_history(request: StaffRequest, as_pdf: bool, borrower_uuid: str = "") -> Document:
    """The payment history, filtered like the list of repayments; ``account`` names a loan or line."""
    owner = get_object_or_404(Borrower, uuid=borrower_uuid) if borrower_uuid else None
    account_uuid = request.GET.get("account", "")
    accounts = Account.objects.filter(kind__in=REPAYMENTS_OF, borrower_uuid=borrower_uuid)
    account = get_object_or_404(accounts, uuid=account_uuid) if account_uuid and owner else None
    mode = Mode.BORROWER if owner else Mode.INTERNAL
    options = Options.of(request.GET, mode=mode, can_refresh=False)
    return history_paper.document(owner, account, request.GET, options, today=business_date())


@requires("summaries.document")
@document_view
def portfolio(request: StaffRequest, as_pdf: bool) -> Document:
    options = replace(Options.of(request.GET, can_refresh=False), mode=Mode.INTERNAL)
    return portfolio_paper.document(known_page(request.GET.get("day", "")), options)


def _read(
    request: StaffRequest, copies: Sequence[LiveCopy], options: Options, as_pdf: bool
) -> Sequence[LiveCopy]:
    """Read the copies of a document. A preview's panel calls the service later, a PDF calls it first."""
    if as_pdf or options.is_from_copies:
        return read_copies(Actor.of(request), copies, options)
    return panel_copies(request, PANEL, copies)


def _owner(record: Account | Application) -> Borrower | None:
    return Borrower.objects.filter(uuid=record.borrower_uuid).first()


def _create_pdf(request: StaffRequest, document: Document) -> HttpResponse:
    """Send the PDF, or start a job for a document that is long or takes long; if it fails, the preview says why."""
    actor = Actor.of(request)
    if started := open_document(actor, document):
        return finish_action(request, started.get_absolute_url())
    stamp = Stamp.new(document.form, at=timezone.now(), by=actor.name)
    html = document.html(stamp)
    if not document.is_long:
        try:
            file = render(html, seconds=REQUEST_SECONDS)
        except TookTooLong:
            pass
        except NotRendered as reason:
            return _preview_page(request, document, failure=reason)
        else:
            record_print(actor, print_entry(document, stamp), file)
            disposition = "attachment" if "download" in request.GET else "inline"
            return _pdf_response(file, document.file_name, stamp.code, disposition)
    started = start_long_document(tasks.create_long_document, actor, document, stamp, html)
    return finish_action(request, started.get_absolute_url())


def _pdf_response(file: bytes, file_name: str, code: str, disposition: str = "inline") -> HttpResponse:
    headers = file_headers(file_name, disposition) | {"X-Document-Code": code}
    return HttpResponse(file, content_type="application/pdf", headers=headers)


def _preview(request: StaffRequest, document: Document) -> HttpResponse:
    subject = document.subject
    log_view(
        Actor.of(request),
        "summaries.preview",
        subject_kind=subject.kind,
        subject_uuid=subject.uuid or "summaries.preview",
        subject_label=document.title,
        borrower_uuid=subject.borrower_uuid,
        is_repeat=bool(request.htmx),
    )
    return _preview_page(request, document)


def _preview_page(
    request: StaffRequest, document: Document, *, failure: NotRendered | None = None
) -> HttpResponse:
    stamp = Stamp(timezone.now(), request.user.audit_name())
    fresh = None
    if not document.options.is_from_copies:
        is_short = len(document.copies) <= 2 * MAX_LIVE_ACCOUNTS  # Each account has two.
        fresh = Freshness(document.copies, loads_itself=is_short)
    context = {
        **document.context(stamp),
        **_addresses(request),
        "fresh": fresh,
        "failure": failure,
        "choices": CHOICES,
        "has_sections": document.form is borrower_summary.FORM,
    }
    status = HTTPStatus.SERVICE_UNAVAILABLE if failure else HTTPStatus.OK
    return render_page(request, "documents/preview.html", context, partial=PANEL, status=status)


def _addresses(request: StaffRequest) -> Mapping[str, Any]:
    """The addresses of preview and PDF, and the query parameters that aren't form fields."""
    match = request.resolver_match
    name = f"documents:{match.url_name.removesuffix('_pdf')}" if match and match.url_name else ""
    ids = {key: value for key, value in match.kwargs.items() if key != "as_pdf"} if match else {}
    query = request.GET.copy()
    for transient in ("refresh", "download"):
        query.pop(transient, None)
    pdf_url = reverse(f"{name}_pdf", kwargs=ids)
    return {
        "preview_url": reverse(name, kwargs=ids),
        "pdf_url": f"{pdf_url}?{query.urlencode()}".rstrip("?"),
        "download_url": f"{pdf_url}?{(query.urlencode() + '&download=1').lstrip('&')}",
        "other_parameters": [
            (key, value) for key, values in query.lists() if key not in FIELDS for value in values
        ],
    }


# --- Long documents, which a job creates ---


@require_safe
@requires("summaries.document")
def long_document(request: StaffRequest, document_id: UUID) -> HttpResponse:
    """Show the progress of a long document, and its PDF once it is ready."""
    documents = LongDocument.objects.annotate(is_ready=Q(document__isnull=False)).select_related("job")
    documents = documents.defer("html", "document")
    found = get_object_or_404(documents, pk=document_id, actor_id=request.user.pk)
    subject = found.print_entry
    log_page(
        request,
        subject_kind=subject["subject_kind"],
        subject_uuid=subject["subject_uuid"] or str(found.pk),
        subject_label=found.title,
        borrower_uuid=subject["borrower_uuid"],
    )
    return render_page(request, "documents/long.html", {"long": found}, partial="long")


@require_safe
@requires("summaries.document")
def long_download(request: StaffRequest, document_id: UUID) -> HttpResponse:
    ready = LongDocument.objects.filter(document__isnull=False)
    found = get_object_or_404(ready, pk=document_id, actor_id=request.user.pk)
    code = found.print_entry["detail"]["code"]
    entry = found.print_entry | {"detail": {"code": code, "document": str(found.pk)}}
    append(Actor.of(request), "summaries.download", **entry)
    return _pdf_response(bytes(found.document or b""), found.file_name, code)


# --- Whether a document is what it claims to be ---


@accepts_files(1)
@require_http_methods(["GET", "HEAD", "POST"])
@requires("summaries.verify")
def verify(request: StaffRequest, code: str = "") -> HttpResponse:
    """Show who printed the document with this code, when, and how old its data were; compare a file with it."""
    code = (code or request.GET.get("code", "")).replace("\0", "\ufffd").strip().upper()
    printed = Printed.objects.select_related("entry").filter(code=code).first() if code else None
    context: dict[str, Any] = {"code": code[:40], "printed": printed}
    if printed:
        entry = printed.entry
        log_subject(request, entry, label=f"document {code}", otherwise=f"document {code}")
        context["reported"] = {
            name: parse_datetime(entry.detail.get(name) or "") for name in ("data_from", "data_to")
        }
        if request.method == "POST":
            context["comparison"] = _compare_upload(request, printed)
    status = HTTPStatus.NOT_FOUND if code and not printed else HTTPStatus.OK
    return render_page(request, "documents/verify.html", context, status=status)


def _compare_upload(request: StaffRequest, printed: Printed) -> dict[str, Any]:
    """Compare an uploaded file with the printed one, and record the result."""
    file = request.FILES.get("document")
    if file is None:
        return {"is_same": False, "words": "No file selected."}
    entry = printed.entry
    difference = _difference(file, entry.detail)
    subject = same_subject(entry, str(entry.detail.get("code", "")))
    append(Actor.of(request), "summaries.verify", result="different" if difference else "same", **subject)
    words = difference or f"All {file.size:,} bytes match."
    return {"is_same": not difference, "words": words}


def _difference(file: "UploadedFile[bytes]", detail: Mapping[str, Any]) -> str:
    """How a file differs from the printed one. A file of another length isn't read."""
    if file.size != detail.get("bytes"):
        return f"The file has {file.size:,} bytes; the document has {detail.get('bytes'):,}."
    is_same = hashlib.sha256(file.read()).hexdigest() == detail.get("sha256")
    return "" if is_same else "Same length, but the content differs."
