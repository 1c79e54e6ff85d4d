"""Documents on screen and as PDF to hand out: preview and PDF draw the same template from the same object."""

import logging
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import wraps
from http import HTTPStatus
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from portal.accounts.roles import View, requires
from portal.applications.offers import View as OfferView
from portal.audit.chain import append
from portal.audit.models import Actor
from portal.audit.sightings import log_page, saw
from portal.gateway import StaffRequest, error_page
from portal.readings import REPAYMENTS_OF, Freshness, Reading, account, ask, show
from portal.registry import memory
from portal.registry.models import Kind, Record
from portal.summaries import line as line_summary
from portal.summaries import loan_schedule as loan_paper
from portal.summaries import offer_sheet as offer_paper
from portal.summaries import statement_of_account as account_paper
from portal.summaries.assemble import FORM as BORROWER_SUMMARY
from portal.summaries.assemble import accounts_of, borrower_document
from portal.summaries.documents import BROKEN, Document, Stamp, issue, issue_in_background
from portal.summaries.models import LongDocument
from portal.summaries.options import CHOICES, MODES, PAPERS, SECTIONS, Mode, Options
from portal.summaries.pdf import NotDrawn
from portal.summaries.tasks import create_long_document
from portal.summaries.turns import Busy, turn
from portal.ui.htmx import done, render_page
from servicing.values import same_word

logger = logging.getLogger(__name__)

# A PDF that is asked for waits this long for a silent service, then shows copies.
PATIENCE = 8.0


def document_view(view: View) -> View:
    """Let a person create one PDF at a time, and explain stored answers that make no sense on a page of their own."""

    @wraps(view)
    def guarded(request: StaffRequest, *args: Any, as_pdf: bool = False, **kwargs: Any) -> HttpResponseBase:
        try:
            with turn(request.user.pk, LongDocument) if as_pdf else nullcontext():
                return view(request, *args, as_pdf=as_pdf, **kwargs)
        except Busy as busy:
            return busy.page(request)
        except BROKEN as error:
            logger.exception("A document could not be laid out.")
            context = {"problem": type(error).__name__}
            status = HTTPStatus.UNPROCESSABLE_ENTITY
            return error_page(request, "summaries/broken.html", status, context)

    return guarded  # type: ignore[return-value]


@require_safe
@requires("summaries.borrower")
@document_view
def borrower(request: StaffRequest, borrower_uuid: str, *, as_pdf: bool = False) -> HttpResponse:
    """The summary of a borrower, with a choice of what it holds."""
    record = get_object_or_404(Record, kind=Kind.BORROWER, uuid=borrower_uuid)
    options = Options.of(request.GET)
    readings = read(request, accounts_of(record), options, as_pdf=as_pdf)
    document = borrower_document(record, readings, options, today=timezone.localdate())
    return answer(request, document, as_pdf=as_pdf)


@require_safe
@requires("summaries.document")
@document_view
def loan_schedule(
    request: StaffRequest, borrower_uuid: str, loan_uuid: str, *, as_pdf: bool = False
) -> HttpResponse:
    """A loan's schedule with yearly subtotals and totals."""
    record = get_object_or_404(Record, kind=Kind.LOAN, uuid=loan_uuid, borrower_uuid=borrower_uuid)
    options = Options.of(request.GET, mode=Mode.BORROWER)
    (reading,) = read(request, [record], options, as_pdf=as_pdf)
    today = timezone.localdate()
    return answer(request, loan_paper.document(reading, owner(record), options, today=today), as_pdf=as_pdf)


@require_safe
@requires("summaries.document")
@document_view
def line(request: StaffRequest, borrower_uuid: str, line_uuid: str, *, as_pdf: bool = False) -> HttpResponse:
    """A line of credit with its balances, statements and repayments."""
    record = get_object_or_404(Record, kind=Kind.LINE, uuid=line_uuid, borrower_uuid=borrower_uuid)
    options = Options.of(request.GET, mode=Mode.BORROWER)
    reading, listed = read(request, account(record), options, as_pdf=as_pdf)
    today = timezone.localdate()
    document = line_summary.document(reading, listed, owner(record), options, today=today)
    return answer(request, document, as_pdf=as_pdf)


@require_safe
@requires("summaries.document")
@document_view
def offer_sheet(
    request: StaffRequest, borrower_uuid: str, application_uuid: str, *, as_pdf: bool = False
) -> HttpResponse:
    """The offers of an application, those chosen on its page and in their order there."""
    kind = Kind.APPLICATION
    record = get_object_or_404(Record, kind=kind, uuid=application_uuid, borrower_uuid=borrower_uuid)
    options = Options.of(request.GET, mode=Mode.BORROWER)
    is_readable = not same_word(record.product, "LOAN")
    reading = read(request, [record], options, as_pdf=as_pdf)[0] if is_readable else Reading(record)
    document = offer_paper.document(reading, owner(record), options, OfferView.of(request.GET))
    return answer(request, document, as_pdf=as_pdf)


@require_safe
@requires("summaries.document")
@document_view
def statement_of_account(
    request: StaffRequest, borrower_uuid: str = "", *, as_pdf: bool = False
) -> HttpResponse:
    """Repayments by month with subtotals, narrowed by the filters of their list; ``account`` names a loan or line."""
    holder = get_object_or_404(Record, kind=Kind.BORROWER, uuid=borrower_uuid) if borrower_uuid else None
    wanted = request.GET.get("account", "")
    accounts = Record.objects.filter(kind__in=REPAYMENTS_OF, borrower_uuid=borrower_uuid)
    one = get_object_or_404(accounts, uuid=wanted) if wanted and holder else None
    options = Options.of(request.GET, mode=Mode.BORROWER if holder else Mode.INTERNAL)
    document = account_paper.document(holder, one, request.GET, options, today=timezone.localdate())
    return answer(request, document, as_pdf=as_pdf)


# --- What they share ---


def read(
    request: StaffRequest, records: Sequence[Record], options: Options, *, as_pdf: bool
) -> Sequence[Reading]:
    """The copies a document is drawn from. A preview's panel asks the service by itself, a PDF asks first."""
    if as_pdf and not options.is_from_copies:
        ask(Actor.of(request), records, deadline=PATIENCE)
    if as_pdf or options.is_from_copies:
        stored = Record.objects.in_bulk([record.pk for record in records])
        return [Reading(stored[record.pk]) for record in records]
    return show(request, {"document": records})["document"]


def owner(record: Record) -> Record | None:
    """The borrower, where it is known."""
    return memory.find(Kind.BORROWER, record.borrower_uuid)


def answer(request: StaffRequest, document: Document, *, as_pdf: bool) -> HttpResponse:
    """The preview, or the PDF with its entry in the audit; without a PDF the preview says why."""
    if not as_pdf:
        look(request, document)
        return preview(request, document)
    if document.is_long:
        started = issue_in_background(create_long_document, Actor.of(request), document)
        return done(request, started.get_absolute_url())
    try:
        code, drawn = issue(Actor.of(request), document)
    except NotDrawn as reason:
        return preview(request, document, failure=reason)
    return pdf_response(drawn, document.file_name, code)


def pdf_response(drawn: bytes, file_name: str, code: str) -> HttpResponse:
    """The file, to be opened in the browser."""
    response = HttpResponse(drawn, content_type="application/pdf")
    response["Content-Disposition"] = f'inline; filename="{file_name}"'
    response["Cache-Control"] = "no-store"
    response["X-Document-Code"] = code
    return response


@require_safe
@requires("summaries.document")
def long_document(request: StaffRequest, document_id: UUID) -> HttpResponse:
    """A document that a job creates: how far it is, and its PDF once there is one."""
    documents = LongDocument.objects.annotate(is_ready=Q(document__isnull=False)).select_related("job")
    documents = documents.defer("html", "document")
    found = get_object_or_404(documents, pk=document_id, actor_id=request.user.pk)
    subject = found.print_entry
    log_page(
        request,
        kind=subject["subject_kind"],
        uuid=subject["subject_uuid"] or str(found.pk),
        label=found.title,
        borrower_uuid=subject["borrower_uuid"],
    )
    return render_page(request, "summaries/long.html", {"long": found}, partial="long")


@require_safe
@requires("summaries.document")
def long_download(request: StaffRequest, document_id: UUID) -> HttpResponse:
    """The PDF of a document that a job created."""
    ready = LongDocument.objects.filter(document__isnull=False)
    found = get_object_or_404(ready, pk=document_id, actor_id=request.user.pk)
    code = found.print_entry["detail"]["code"]
    append(
        Actor.of(request),
        "summaries.download",
        **{**found.print_entry, "detail": {"code": code, "document": str(found.pk)}},
    )
    return pdf_response(bytes(found.document or b""), found.file_name, code)


def look(request: StaffRequest, document: Document) -> None:
    """That somebody reads it on the screen; a document of all borrowers is one, too."""
    of = document.subject
    saw(
        Actor.of(request),
        "summaries.preview",
        kind=of.kind,
        uuid=of.uuid or "summaries.preview",
        label=document.title[:300],
        borrower_uuid=of.borrower_uuid,
        is_repeat=bool(request.htmx),
    )


def preview(request: StaffRequest, document: Document, *, failure: NotDrawn | None = None) -> HttpResponse:
    """The document as it would be printed, with everything that can be chosen."""
    stamp = Stamp(timezone.now(), request.user.audit_name())
    context = {
        **document.context(stamp),
        **addresses(request),
        "fresh": None if document.options.is_from_copies else Freshness(document.readings),
        "failure": failure,
        "choices": {"modes": MODES, "papers": PAPERS, "sections": SECTIONS},
        "has_sections": document.form is BORROWER_SUMMARY,
    }
    status = HTTPStatus.SERVICE_UNAVAILABLE if failure else HTTPStatus.OK
    return render_page(request, "summaries/preview.html", context, partial="document", status=status)


def addresses(request: StaffRequest) -> Mapping[str, Any]:
    """Where preview and PDF of this document are, and what of the query string is no choice of the form."""
    match = request.resolver_match
    name = f"summaries:{match.url_name.removesuffix('_pdf')}" if match and match.url_name else ""
    ids = {key: value for key, value in match.kwargs.items() if key != "as_pdf"} if match else {}
    query = request.GET.copy()
    for passing in ("panel", "refresh"):
        query.pop(passing, None)
    return {
        "preview_url": reverse(name, kwargs=ids),
        "pdf_url": f"{reverse(f'{name}_pdf', kwargs=ids)}?{query.urlencode()}".rstrip("?"),
        "kept": [(key, value) for key, values in query.lists() if key not in CHOICES for value in values],
    }
