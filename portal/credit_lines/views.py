"""One line of credit and its statement documents."""

from contextlib import ExitStack
from tempfile import SpooledTemporaryFile
from typing import IO, Any

from csp.constants import SELF
from csp.decorators import csp_replace
from django.http import FileResponse, Http404, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.clickjacking import xframe_options_sameorigin
from django.views.decorators.http import require_safe

from portal.accounts.roles import requires
from portal.audit.chain import append, entry_subject
from portal.audit.models import Actor
from portal.audit.view_log import log_view
from portal.core.business_date import business_date
from portal.credit_lines.documents import NotListed, download, link_problems
from portal.credit_lines.list_page import LINES
from portal.credit_lines.statements import StatementKey, statement_list
from portal.credit_lines.trends import samples, trend_rows, trends
from portal.credit_lines.wording import last_bill, past_due_words, read_aloud
from portal.gateway.client import StaffRequest
from portal.gateway.reading import LiveCopy
from portal.records.figures import old_copy_day
from portal.records.models import Account, Kind
from portal.repayments.account_page import Lists, account_page, unrecognized_words
from portal.ui import wording
from portal.ui.htmx import render_page
from servicing import DocumentRefused, NotFound, ServicingError, Statement, consistency
from servicing.figures import percent_of_limit

# A document must load and send nothing. Browsers may show it in a page of their own, as an embedded object with inline
# styles, and apply this policy to it. A sandbox would keep their viewers from starting.
DOCUMENT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; object-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"
)
MAX_BYTES_IN_MEMORY = 1024 * 1024


@require_safe
@requires("credit_lines.detail")
def detail(request: StaffRequest, borrower_uuid: str, line_uuid: str) -> HttpResponseBase:
    record = get_object_or_404(Account.objects.select_related("answer"), kind=Kind.LINE, uuid=line_uuid)
    if record.borrower_uuid != borrower_uuid:
        return redirect(record)
    return account_page(request, LINES, record, build_context=build_context, parts=("line-statements",))


def build_context(request: StaffRequest, copy: LiveCopy, _: Lists) -> dict[str, Any]:
    """Balances, trends and statements; nothing while only the ID is on file."""
    line, record = copy.answer, copy.record
    if not isinstance(line, Statement):
        return {"line": None}
    figures, today = copy.figures, business_date()
    history = samples(record)
    return {
        "line": line,
        "percent_of_limit": wording.whole_percent(percent_of_limit(figures.principal, figures.limit)),
        "past_due": past_due_words(figures, today),
        "old_copy_day": old_copy_day(record),
        "due_next": figures.due_next,
        "due_since": figures.due_since,
        "due_since_days": figures.due_since and wording.due_days(figures.due_since, copy.copied_on),
        "last_bill": last_bill(line, figures),
        "aloud": read_aloud(line, figures),
        "findings": consistency.check_line(line),
        "trends": trends(history),
        "trend_rows": trend_rows(history),
        "since": history[0].at if history else None,
        "copies": len(history),
        "statements": statement_list(request, record, line, link_problems(record.uuid, line)),
        "unrecognized": unrecognized_words(line),
    }


@require_safe
@requires("credit_lines.pdf")
@xframe_options_sameorigin
@csp_replace({"frame-ancestors": [SELF]})  # type: ignore[arg-type]  # knows only views without arguments
def pdf(request: StaffRequest, borrower_uuid: str, line_uuid: str, key: str) -> HttpResponseBase:
    """Show or download a statement document, or say why there is none."""
    record = get_object_or_404(
        Account.objects.select_related("answer"), kind=Kind.LINE, uuid=line_uuid, borrower_uuid=borrower_uuid
    )
    statement = StatementKey.parse(key)
    if statement is None:
        raise Http404
    with ExitStack() as unless_sent:
        file = unless_sent.enter_context(SpooledTemporaryFile(max_size=MAX_BYTES_IN_MEMORY))
        response = show_document(request, record, statement, file)
        if isinstance(response, FileResponse):  # It closes the file.
            unless_sent.pop_all()
    return response


def show_document(
    request: StaffRequest, record: Account, key: StatementKey, file: IO[bytes]
) -> HttpResponseBase:
    """Download a statement document into ``file`` and show it from there, or say why there is none."""
    try:
        download(request, record.borrower_uuid, record.uuid, key, file)
    except NotListed:
        return show_refusal(
            request, record, key, "The service no longer lists a statement for this date.", 404
        )
    except ServicingError as error:
        words = wording.with_full_stop("; ".join(error.reasons) or error.message)
        status = 404 if isinstance(error, NotFound) else 502 if isinstance(error, DocumentRefused) else 503
        return show_refusal(request, record, key, words, status)
    is_download = "download" in request.GET
    log_view(Actor.of(request), "credit_lines.pdf", **statement_subject(record, key))
    if is_download:
        audit_statement(request, record, key, "credit_lines.download")
    name = f"statement-{key}.pdf"
    response = FileResponse(file, as_attachment=is_download, filename=name, content_type="application/pdf")
    response["Cache-Control"] = "no-store"
    response["Content-Security-Policy"] = DOCUMENT_POLICY
    return response


def audit_statement(
    request: StaffRequest,
    record: Account,
    key: StatementKey,
    action: str,
    *,
    result: str = "",
    reason: str = "",
) -> None:
    """Append an audit entry for a download, however soon after a view, or for a failure."""
    append(Actor.of(request), action, result=result, reason=reason, **statement_subject(record, key))


def statement_subject(record: Account, key: StatementKey) -> dict[str, Any]:
    """The fields that tie an entry or a view to a statement."""
    subject = entry_subject(record, f"statement of {key.words}, line {record.uuid[:8]}")
    return subject | {"subject_uuid": key.audit_uuid(record.uuid)}


def show_refusal(
    request: StaffRequest, record: Account, key: StatementKey, words: str, status: int
) -> HttpResponse:
    """Show a card instead of the document, and record the failure."""
    audit_statement(request, record, key, "credit_lines.pdf", result="rejected", reason=words[:500])
    context = {"record": record, "key": key, "words": words}
    return render_page(request, "credit_lines/document.html", context, status=status)
