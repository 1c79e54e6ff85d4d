"""Lines of credit that this dashboard knows: the list across borrowers, one line, the documents of its statements."""

from datetime import date
from typing import Any

from csp.constants import SELF
from csp.decorators import csp_replace
from django.conf import settings
from django.http import FileResponse, Http404, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.views.decorators.clickjacking import xframe_options_sameorigin
from django.views.decorators.http import require_http_methods, require_safe

from portal import portfolio
from portal.account_page import about, account_page
from portal.accounts.roles import requires
from portal.audit.chain import append
from portal.audit.models import Actor
from portal.audit.sightings import saw
from portal.credit_lines.documents import NotListed, document
from portal.credit_lines.statements import papers_of, subject
from portal.credit_lines.trends import samples, trends
from portal.credit_lines.wording import past_due_words, read_aloud
from portal.gateway import StaffRequest
from portal.portfolio import Column, Portfolio, only_flagged
from portal.readings import Reading
from portal.registry.models import Kind, Record
from portal.ui import wording
from portal.ui.htmx import render_page
from servicing import DocumentRefused, NotFound, ServicingError, Statement, sense
from servicing.values import calendar_day

LIST = Portfolio(
    kind=Kind.LINE,
    area="credit_lines",
    title="Lines of credit",
    noun="line",
    columns=(
        Column("limit", "Limit", lambda row: row.record.amount, "money", "sd-wide"),
        Column("past_due", "Past due", lambda row: row.record.past_due, "owed"),
        Column("due", "Payment due", lambda row: row.record.due_date, "due"),
        Column("checked", "Last checked", lambda row: row.record.checked_at, "checked", "sd-wide"),
    ),
    sorts={
        "created": "-created_at",
        "limit": "-amount",
        "past_due": "-past_due",
        "due": "due_date",
        "checked": "checked_at",
    },
    filters=(only_flagged("past_due", "Past due"),),
    views={
        "Past due": "past_due=yes&sort=past_due",
        "Payment due first": "sort=due",
        "Oldest copy first": "sort=checked",
    },
)
# A document loads nothing and sends nothing. Browsers may put it into a page of their own, as an embedded object with
# styles in attributes, to which this policy applies; a sandbox would keep their viewers from starting.
DOCUMENT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; object-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"
)
PANELS = ("line", "line-statements", "statement-list", "line-repayments")


@require_safe
@requires("credit_lines.index")
def index(request: StaffRequest) -> HttpResponse:
    """The list with search, filters and paging, from the registry."""
    return portfolio.index(request, LIST)


@require_safe
@requires("credit_lines.index")
def export(request: StaffRequest) -> HttpResponseBase:
    """The list as a file."""
    return portfolio.export(request, LIST)


@require_http_methods(["GET", "POST"])
@requires("credit_lines.index")
def refresh(request: StaffRequest) -> HttpResponseBase:
    """Some of the list are read again."""
    return portfolio.refresh(request, LIST)


@require_safe
@requires("credit_lines.detail")
def detail(request: StaffRequest, borrower_uuid: str, line_uuid: str) -> HttpResponseBase:
    """The page from its copies, or one of its panels after asking the service."""
    record = get_object_or_404(Record, kind=Kind.LINE, uuid=line_uuid)
    if record.borrower_uuid != borrower_uuid:
        return redirect(record)
    response = account_page(request, LIST, record, told=told, panels=PANELS)
    if request.htmx.target == "line":
        response["HX-Trigger"] = "line:read"
    return response


def told(request: StaffRequest, reading: Reading) -> dict[str, Any]:
    """What the page draws from the line itself; nothing while only its identifier is known."""
    line, record = reading.answer, reading.record
    if not isinstance(line, Statement):
        return {"line": None}
    limit, available = line.credit_limit, line.available_credit
    used = None if limit is None or available is None else limit - available
    history = samples(record)
    wanted = request.GET.get("statement", "")
    return {
        "line": line,
        "used": used,
        "used_percent": wording.percent(used, limit),
        "marks": (settings.UTILISATION_WARN, settings.UTILISATION_BAD),
        "past_due": past_due_words(line),
        "aloud": read_aloud(line, timezone.localdate()),
        "findings": sense.of_line(line),
        "history": history[-60:][::-1],
        "trends": trends(history),
        "since": history[0].at if history else None,
        "copies": len(history),
        "papers": papers_of(Actor.of(request), record.borrower_uuid, record.uuid, line, wanted),
    }


@require_safe
@requires("credit_lines.pdf")
@xframe_options_sameorigin
@csp_replace({"frame-ancestors": [SELF]})  # type: ignore[arg-type]  # knows only views without arguments
def pdf(request: StaffRequest, borrower_uuid: str, line_uuid: str, day: str) -> HttpResponseBase:
    """The document of a statement, fetched by the link that the service gives now; or a sentence why not."""
    record = get_object_or_404(Record, kind=Kind.LINE, uuid=line_uuid, borrower_uuid=borrower_uuid)
    billed = calendar_day(day)
    if billed is None or billed.isoformat() != day:
        raise Http404
    try:
        file = document(request, borrower_uuid, line_uuid, billed)
    except NotListed:
        return refusal(
            request, record, billed, "The lending service no longer lists a document for this day.", 404
        )
    except ServicingError as error:
        return refusal(request, record, billed, words_of(error), status_of(error))
    is_download = "download" in request.GET
    seen(request, record, billed, is_download=is_download)
    response = FileResponse(
        file,
        as_attachment=is_download,
        filename=f"statement-{day}.pdf",
        content_type="application/pdf",
    )
    response["Cache-Control"] = "no-store"
    response["Content-Security-Policy"] = DOCUMENT_POLICY
    return response


def seen(request: StaffRequest, record: Record, day: date, *, is_download: bool) -> None:
    """Who looked at a statement; a file that leaves the desk has an entry of its own, however soon after a look."""
    actor, label = Actor.of(request), f"statement of {wording.day(day)}, line {record.uuid[:8]}"
    named = about(record) | {"uuid": subject(record.uuid, day)}
    borrower = record.borrower_uuid
    saw(actor, "credit_lines.pdf", kind=record.kind, uuid=named["uuid"], label=label, borrower_uuid=borrower)
    if is_download:
        append(
            actor,
            "credit_lines.download",
            subject_kind=named["kind"],
            subject_uuid=named["uuid"],
            subject_label=label,
            borrower_uuid=record.borrower_uuid,
        )


def refusal(request: StaffRequest, record: Record, day: date, words: str, status: int) -> HttpResponse:
    """A card in place of the document; that it was refused is kept."""
    append(
        Actor.of(request),
        "credit_lines.pdf",
        result="rejected",
        subject_kind=record.kind,
        subject_uuid=subject(record.uuid, day),
        subject_label=f"statement of {wording.day(day)}, line {record.uuid[:8]}",
        borrower_uuid=record.borrower_uuid,
        reason=words[:500],
    )
    context = {"record": record, "day": day, "words": words}
    return render_page(request, "credit_lines/document.html", context, status=status)


def words_of(error: ServicingError) -> str:
    """Why there is no document, as one sentence."""
    return wording.ended("; ".join(error.reasons) or error.message)


def status_of(error: ServicingError) -> int:
    """What the answer says to programs."""
    match error:
        case NotFound():
            return 404
        case DocumentRefused():
            return 502
    return 503
