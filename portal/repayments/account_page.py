"""What the pages of loans, lines of credit and applications share."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from django.http import HttpResponse

from portal.audit.chain import entry_subject
from portal.audit.models import Actor
from portal.audit.view_log import last_view, log_view, update_view
from portal.gateway.client import StaffRequest
from portal.gateway.panels import Freshness, panel_copies, tell_account_read
from portal.gateway.reading import LiveCopy, account_copies
from portal.messaging.payment_events import messages_of_account
from portal.notes.models import Note
from portal.records import changes
from portal.records.models import Account
from portal.records.rows import borrowers_by_uuid
from portal.records.sources import REPAYMENTS_OF
from portal.repayments.table import ACCOUNT_PAGE_SIZE, repayment_table, rows_of_lists
from portal.tables.pages import ListPage
from portal.ui.htmx import render_page
from servicing import Loan, Statement

MAX_NOTES = 50
Lists = dict[str, LiveCopy]
"""The copies of an account's lists by their kinds."""
ContextBuilder = Callable[[StaffRequest, LiveCopy, Lists], dict[str, Any]]


def account_page(
    request: StaffRequest,
    list_page: ListPage,
    record: Account,
    *,
    build_context: ContextBuilder,
    parts: tuple[str, ...],
) -> HttpResponse:
    """Render the page from saved copies, its panel after calling the service, or one of its other parts.

    ``build_context`` adds what only this kind of account has, from its copy and those of its lists. The panel is
    named like the noun; the repayments are a part of the same name with ``-repayments`` appended.
    """
    area, noun = list_page.area, list_page.noun
    repayments_part = f"{noun}-repayments"
    copy, *others = panel_copies(request, noun, account_copies(record))
    lists = {one.kind: one for one in others}
    repayments_copy = lists[REPAYMENTS_OF[record.kind]]
    context = {
        **record_context(
            request, copy, action=f"{area}.detail", label=f"{noun} {record.uuid[:8]}", panel=noun
        ),
        "fresh": Freshness([copy]),
        "repayments_fresh": Freshness([repayments_copy]),
        "panel_fresh": Freshness([copy, *others]),
        "table": cache(
            lambda: repayment_table(
                request, rows_of_lists([repayments_copy]), covers=f"of this {noun}", size=ACCOUNT_PAGE_SIZE
            )
        ),
        "newest_messages": cache(partial(messages_of_account, record)),
    }
    if request.htmx.target != repayments_part:
        context |= build_context(request, copy, lists)
    response = render_page(request, f"{area}/detail.html", context, partial=(noun, repayments_part, *parts))
    is_panel = request.htmx.target == noun
    return tell_account_read(response, context["panel_fresh"]) if is_panel else response


def record_context(
    request: StaffRequest, copy: LiveCopy, *, action: str, label: str, panel: str
) -> dict[str, Any]:
    """Log the view of a record, and return its borrower, notes and changes since this person's last view.

    Changes count as viewed once ``panel``, which shows them, has loaded.
    """
    record, actor = copy.record, Actor.of(request)
    digest, look = changes.answer_digest(record), last_view(actor, record.uuid)
    log_view(actor, action, shown=digest, is_repeat=bool(request.htmx), **entry_subject(record, label))
    if request.htmx.target == panel:
        update_view(actor, record.uuid, digest)
    return {
        "record": record,
        "owner": borrowers_by_uuid([record.borrower_uuid]).get(record.borrower_uuid),
        "look": look,
        "changes": changes.changes_since(record, look.shown) if look else [],
        "notes": Note.objects.filter(subject_kind=record.kind, subject_uuid=record.uuid)[:MAX_NOTES],
    }


def unrecognized_words(answer: Statement | Loan) -> str:
    """Undocumented fields and unreadable values, as the service sent them."""
    extra = "; ".join(f"{name}: {value}" for name, value in answer.extra.items())
    issues = "; ".join(f"{issue.path} {issue.problem}" for issue in answer.issues)
    return ". ".join(filter(None, (extra, issues)))
