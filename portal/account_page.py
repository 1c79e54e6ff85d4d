"""What the pages of loans, lines of credit and applications share."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from django.http import HttpResponse

from portal.audit.chain import entry_subject
from portal.audit.models import Actor
from portal.audit.view_log import last_view, log_view, update_view
from portal.gateway import StaffRequest
from portal.lists.pages import ListPage
from portal.live.panels import LOADER, Freshness, Panels, show_panels
from portal.live.reading import LiveCopy, account_records
from portal.messaging.payment_events import messages_of_account
from portal.notes.models import Note
from portal.registry import changes
from portal.registry.models import Kind, Record
from portal.registry.records import records_by_uuid
from portal.repayments.table import ACCOUNT_PAGE_SIZE, repayment_table, rows_of_lists
from servicing import Loan, Statement

MAX_NOTES = 50
ContextBuilder = Callable[[StaffRequest, LiveCopy, LiveCopy], dict[str, Any]]


def account_page(
    request: StaffRequest,
    list_page: ListPage,
    record: Record,
    *,
    build_context: ContextBuilder,
    parts: tuple[str, ...],
    followers: tuple[str, ...] = (),
) -> HttpResponse:
    """Render the page from saved copies, or its panels after a call to the service.

    ``build_context`` adds what only this kind of account has, from its copy and that of its repayments. Two panels
    call the service: one named like the noun, and its repayments under the same name with ``-repayments`` appended.
    ``followers`` are the parts of the page that change with the first.
    """
    area, noun = list_page.area, list_page.noun
    repayments_panel = f"{noun}-repayments"
    account, repayments = account_records(record)
    copies = show_panels(request, {noun: [account], repayments_panel: [repayments]})
    copy, repayments_copy = copies[noun][0], copies[repayments_panel][0]
    fresh, repayments_fresh = Freshness([copy]), Freshness([repayments_copy])
    panels = Panels(request, {noun: fresh, repayments_panel: repayments_fresh}, {noun: followers})
    context = {
        **record_context(
            request, copy, action=f"{area}.detail", label=f"{noun} {record.uuid[:8]}", panel=noun
        ),
        "fresh": fresh,
        "repayments_fresh": repayments_fresh,
        "table": cache(
            lambda: repayment_table(
                request, rows_of_lists([repayments_copy]), covers=f"of this {noun}", size=ACCOUNT_PAGE_SIZE
            )
        ),
        "newest_messages": cache(partial(messages_of_account, record)),
    }
    if panels.draws(noun):
        context |= build_context(request, copy, repayments_copy)
    return panels.render(f"{area}/detail.html", context, partial=parts)


def record_context(
    request: StaffRequest, copy: LiveCopy, *, action: str, label: str, panel: str
) -> dict[str, Any]:
    """Log the view of a record, and return its borrower, notes and changes since this person's last view.

    Changes count as viewed once ``panel``, which shows them, has loaded.
    """
    record, actor = copy.record, Actor.of(request)
    digest, look = changes.answer_digest(record), last_view(actor, record.uuid)
    log_view(actor, action, shown=digest, is_repeat=bool(request.htmx), **entry_subject(record, label))
    if request.htmx.target in (panel, LOADER):
        update_view(actor, record.uuid, digest)
    return {
        "record": record,
        "owner": records_by_uuid([Kind.BORROWER], [record.borrower_uuid]).get(record.borrower_uuid),
        "look": look,
        "changes": changes.changes_since(record, look.shown) if look else [],
        "notes": Note.objects.filter(subject_kind=record.kind, subject_uuid=record.uuid)[:MAX_NOTES],
    }


def unrecognized_words(answer: Statement | Loan) -> str:
    """Undocumented fields and unreadable values, as the service sent them."""
    extra = "; ".join(f"{name}: {value}" for name, value in answer.extra.items())
    issues = "; ".join(f"{issue.path} {issue.problem}" for issue in answer.issues)
    return ". ".join(filter(None, (extra, issues)))
