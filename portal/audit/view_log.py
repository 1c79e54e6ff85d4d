"""Records who viewed what, and on which page: one row for a person, page, subject and ten minutes.

A page whose view can't be recorded is not shown. A test opens every address of the portal and looks for its row.
"""

import hashlib
from collections.abc import Mapping
from datetime import timedelta
from itertools import islice
from typing import Any

from django.db.models import F, Max, QuerySet
from django.http import HttpRequest
from django.utils import timezone

from portal.accounts.sessions import BACKGROUND_HEADER
from portal.audit.chain import same_subject
from portal.audit.models import Actor, Entry, PageView, WriteIntent
from servicing.masking import masked, masked_text

REPEAT_WINDOW = timedelta(minutes=10)
SESSION = timedelta(days=7)
"""Longer than any session."""
MAX_NAMES = 30
"""The most parameters of a query string in an entry."""
LISTS = {
    "admin:audit_entry_changelist": "the audit trail",
    "admin:audit_pageview_changelist": "page views",
    "admin:audit_remotecall_changelist": "service calls",
    "admin:audit_writeintent_changelist": "writes to the service",
    "applications:index": "the list of applications",
    "approvals:index": "the list of approvals",
    "borrowers:create": "their drafts of borrowers",
    "borrowers:index": "the list of borrowers",
    "collections:index": "the collections worklist",
    "collections:refresh": "the accounts being refreshed",
    "collections:returns": "returned payments",
    "credit_lines:index": "the list of lines of credit",
    "credit_lines:refresh": "the lines of credit being refreshed",
    "home:index": "the home page",
    "loans:index": "the list of loans",
    "loans:refresh": "the loans being refreshed",
    "lookup:imported": "the rows of an import",
    "lookup:open_as": "search results",
    "lookup:search": "search results",
    "messaging:index": "the list of messages",
    "operations:status": "service calls",
    "portfolio:accounts": "the accounts of a day",
    "portfolio:payments": "the payments of a day",
    "portfolio:index": "the portfolio",
    "repayments:index": "the list of repayments",
    "documents:batch": "the summaries of a batch",
}
"""Lists and searches by URL name, with their names in entries."""
_APPS = {"admin": "audit", "documents": "summaries"}
_ACTIONS = {
    "audit:detail": "audit.view",
    "borrowers:edit": "borrowers.edit",
    "borrowers:edit_person": "borrowers.edit",
    "credit_lines:pdf": "credit_lines.pdf",
    "documents:borrower": "summaries.preview",
    "documents:line": "summaries.preview",
    "documents:loan_schedule": "summaries.preview",
    "documents:offer_sheet": "summaries.preview",
    "documents:payment_history": "summaries.preview",
    "documents:portfolio": "summaries.preview",
    "lookup:record": "lookup.record",
    "messaging:note": "notes.view",
}
"""Actions of pages about one record that don't end in ``.detail`` or ``.view``, or belong to another area."""


def log_page(request: HttpRequest, **subject: Any) -> None:
    """Record the view of a page about one borrower or person."""
    name = _address_name(request)
    app, _, page = name.partition(":")
    usual = f"{_APPS.get(app, app)}.{'detail' if page == 'detail' else 'view'}"
    action, is_repeat = _ACTIONS.get(name, usual), BACKGROUND_HEADER in request.headers
    log_view(Actor.of(request), action, detail={"page": name}, is_repeat=is_repeat, **subject)


def log_subject(request: HttpRequest, row: Entry | WriteIntent, *, label: str, otherwise: str) -> None:
    """Record the view of a page about a row's subject; ``otherwise`` identifies the subject if the row can't."""
    subject = same_subject(row, label)
    log_page(request, **subject | {"subject_uuid": row.subject_uuid or otherwise})


def log_list(request: HttpRequest, *, count: int | None) -> None:
    """Record the view of a list: its query and the number of matching rows, but no names."""
    name = _address_name(request)
    app = name.partition(":")[0]
    query = {
        # As texts: by its name a number may pass for an ID.
        _storable(name): ", ".join(masked_text(_storable(value)) for value in values)
        for name, values in islice(request.GET.lists(), MAX_NAMES)
    }
    log_view(
        Actor.of(request),
        f"{_APPS.get(app, app)}.index",
        subject_uuid=hashlib.sha256(f"{request.path} {query}".encode("utf-8", "replace")).hexdigest(),
        subject_label=LISTS[name],
        detail={"query": query, "count": count},
        is_repeat=BACKGROUND_HEADER in request.headers,
    )


def _storable(text: str) -> str:
    """Text that every database can store."""
    return text.replace("\0", "")[:200]


def count_suggestions(request: HttpRequest) -> None:
    """Record that the search box or a form suggested records, in one row per session."""
    actor, session = Actor.of(request), hashlib.sha256(str(request.session.session_key).encode()).hexdigest()
    words = "search suggestions"
    log_view(actor, "lookup.suggest", subject_uuid=session, subject_label=words, repeats_within=SESSION)


def log_view(
    actor: Actor,
    page: str,
    *,
    subject_kind: str = "",
    subject_uuid: str,
    subject_label: str,
    borrower_uuid: str = "",
    shown: str = "",
    detail: Mapping[str, Any] | None = None,
    is_repeat: bool = False,
    repeats_within: timedelta = REPEAT_WINDOW,
) -> None:
    """Record that ``actor`` views something now; ``shown`` is the digest of the answer on screen.

    What a page loads by itself is a repeat: it is recorded only if the page was not in this session, and never counted.
    """
    now, uuid = timezone.now(), subject_uuid[:64]
    recent = _views(actor, uuid).filter(first_at__gte=now - repeats_within)
    if is_repeat:
        if _views(actor, uuid).filter(last_at__gte=now - SESSION).exists():
            return
    elif recent.filter(page=page).update(count=F("count") + 1, last_at=now, shown=shown):
        return
    PageView.objects.create(
        actor_id=actor.id or 0,
        actor_name=actor.name,
        actor_role=actor.role,
        request_id=actor.request_id,
        page=page,
        subject_kind=subject_kind[:20],
        subject_uuid=uuid,
        subject_label=masked(subject_label)[:300],
        borrower_uuid=borrower_uuid[:64],
        detail=masked(dict(detail or {})),
        first_at=now,
        last_at=now,
        shown=shown,
    )


def update_view(actor: Actor, uuid: str, shown: str) -> None:
    """Note that a part of an open page was rendered again from this answer."""
    recent = _detail_views(actor, uuid).filter(first_at__gte=timezone.now() - REPEAT_WINDOW)
    if recent.exclude(shown=shown).exists():
        recent.update(shown=shown)


def last_view(actor: Actor, uuid: str) -> PageView | None:
    """The view before the current one; changes are counted from there."""
    return _detail_views(actor, uuid).filter(first_at__lt=timezone.now() - REPEAT_WINDOW).first()


def _views(actor: Actor, uuid: str) -> QuerySet[PageView]:
    return PageView.objects.filter(actor_id=actor.id or 0, subject_uuid=uuid)


def viewers_of(subject_uuid: str) -> QuerySet[PageView, Any]:
    """Each person who opened the record's own page, with the time of the last view, newest first."""
    views = PageView.objects.filter(subject_uuid=subject_uuid, page__endswith=".detail").order_by()
    return (
        views.values("actor_id").annotate(name=Max("actor_name"), latest=Max("last_at")).order_by("-latest")
    )


def _detail_views(actor: Actor, uuid: str) -> QuerySet[PageView]:
    """Views of the record's own page, which shows the answer."""
    return _views(actor, uuid).filter(page__endswith=".detail")


def _address_name(request: HttpRequest) -> str:
    match = request.resolver_match
    return match.view_name if match else ""
