"""Who looked at personal data, and on which page.

A first look appends an entry; looks at the same thing within ten minutes only count. Each address of the portal is in
one of the two columns below, by its name; a test opens every page of the first column and looks for the entry.
"""

import hashlib
from collections.abc import Mapping
from datetime import timedelta
from itertools import islice
from typing import Any

from django.db import DatabaseError, connection, transaction
from django.db.models import F, QuerySet
from django.http import HttpRequest
from django.utils import timezone

from portal.accounts.sessions import BACKGROUND
from portal.audit import view_spool
from portal.audit.chain import append
from portal.audit.models import Actor, Sighting
from portal.clocks import match_recent
from portal.disk import is_unavailable, write_if_possible
from portal.registry.models import Kind, Record

REPEAT = timedelta(minutes=10)
MAX_NAMES = 30
"""Names of a query string that an entry holds."""

# --- First column: pages and files that show a borrower or a key person ---

PAGES: Mapping[str, str] = {
    "admin:audit_entry_change": "audit.view",
    "admin:audit_entry_history": "audit.view",
    "admin:audit_remotecall_change": "audit.view",
    "admin:audit_remotecall_history": "audit.view",
    "admin:audit_writeintent_change": "audit.view",
    "admin:audit_writeintent_history": "audit.view",
    "applications:detail": "applications.detail",
    "applications:open": "applications.view",
    "applications:prefer": "applications.view",
    "applications:submit": "applications.view",
    "approvals:detail": "approvals.detail",
    "audit:detail": "audit.view",
    "audit:history": "audit.view",
    "audit:resolve": "audit.view",
    "audit:write": "audit.view",
    "borrowers:detail": "borrowers.detail",
    "borrowers:draft": "borrowers.view",
    "borrowers:edit": "borrowers.edit",
    "borrowers:edit_person": "borrowers.edit",
    "credit_lines:detail": "credit_lines.detail",
    "credit_lines:pdf": "credit_lines.pdf",
    "home:snooze": "home.view",
    "loans:detail": "loans.detail",
    "lookup:archive": "lookup.view",
    "lookup:correct": "lookup.view",
    "lookup:record": "lookup.record",
    "messaging:detail": "messaging.detail",
    "messaging:link": "messaging.view",
    "messaging:note": "notes.view",
    "notes:add": "notes.view",
    "notes:add_follow_up": "notes.view",
    "repayments:detail": "repayments.detail",
    "summaries:borrower": "summaries.preview",
    "summaries:line": "summaries.preview",
    "summaries:loan_schedule": "summaries.preview",
    "summaries:long_document": "summaries.view",
    "summaries:offer_sheet": "summaries.preview",
    "summaries:statement_of_account": "summaries.preview",
    "summaries:verify": "summaries.view",
    "summaries:verify_any": "summaries.view",
}
"""Pages about one borrower or person, with the action of their entry."""

LISTS: Mapping[str, tuple[str, str]] = {
    "admin:audit_entry_changelist": ("audit.index", "audit entries"),
    "admin:audit_remotecall_changelist": ("audit.index", "stored calls"),
    "admin:audit_writeintent_changelist": ("audit.index", "writes"),
    "applications:index": ("applications.index", "the list of applications"),
    "approvals:index": ("approvals.index", "the list of approvals"),
    "audit:index": ("audit.index", "the audit trail"),
    "borrowers:create": ("borrowers.index", "their drafts of borrowers"),
    "borrowers:index": ("borrowers.index", "the list of borrowers"),
    "credit_lines:index": ("credit_lines.index", "the list of lines of credit"),
    "credit_lines:refresh": ("credit_lines.index", "the lines of credit being refreshed"),
    "home:index": ("home.index", "the home page"),
    "loans:index": ("loans.index", "the list of loans"),
    "loans:refresh": ("loans.index", "the loans being refreshed"),
    "lookup:imported": ("lookup.index", "the rows of an import"),
    "lookup:open_as": ("lookup.index", "search results"),
    "lookup:search": ("lookup.index", "search results"),
    "messaging:index": ("messaging.index", "the list of messages"),
    "operations:status": ("operations.index", "stored calls"),
    "repayments:index": ("repayments.index", "the list of repayments"),
    "summaries:batch": ("summaries.index", "the summaries of a batch"),
}
"""Lists and searches, with the action and the subject of their entry: query and count, no names."""

FILES: Mapping[str, str] = {
    "admin:audit_entry_export": "audit.export",
    "admin:audit_remotecall_export": "audit.export",
    "admin:audit_writeintent_export": "audit.export",
    "applications:export": "applications.export",
    "applications:export_offers": "applications.export_offers",
    "audit:export": "audit.export",
    "borrowers:export": "borrowers.export",
    "credit_lines:export": "credit_lines.export",
    "loans:export": "loans.export",
    "loans:schedule": "loans.schedule",
    "lookup:export_refused": "lookup.export",
    "messaging:export": "messaging.export",
    "messaging:json": "messaging.download",
    "operations:support_bundle": "operations.support_bundle",
    "repayments:export": "repayments.export",
    "summaries:batch_download": "summaries.download",
    "summaries:borrower_pdf": "summaries.print",
    "summaries:line_pdf": "summaries.print",
    "summaries:loan_schedule_pdf": "summaries.print",
    "summaries:long_download": "summaries.download",
    "summaries:offer_sheet_pdf": "summaries.print",
    "summaries:statement_of_account_pdf": "summaries.print",
}
"""Files, each of them an entry however soon after the last."""

# --- Second column: what shows neither ---

UNRECORDED: Mapping[str, frozenset[str]] = {
    "acts that show no page of their own": frozenset(
        {
            "accounts:end_sessions", "accounts:theme", "applications:follow", "approvals:decide",
            "approvals:withdraw", "borrowers:discard_draft", "home:wake", "lookup:refresh_portfolio",
            "messaging:check", "messaging:sync", "notes:finish", "notes:unpin", "operations:cancel",
            "saved_views:delete", "saved_views:save",
        }
    ),
    "forms and progress without a borrower": frozenset(
        {"lookup:add", "lookup:import_records", "operations:job", "summaries:batch_new"}
    ),
    "the person's own account and what they typed themselves": frozenset(
        {
            "account_change_password", "account_reauthenticate", "account_set_password", "accounts:profile",
            "accounts:resume", "accounts:session", "accounts:sessions", "mfa_activate_totp", "mfa_add_webauthn",
            "mfa_deactivate_totp", "mfa_edit_webauthn", "mfa_generate_recovery_codes", "mfa_index",
            "mfa_list_webauthn", "mfa_reauthenticate", "mfa_reauthenticate_webauthn", "mfa_remove_webauthn",
            "mfa_view_recovery_codes",
        }
    ),
    "signing in and out": frozenset(
        {
            "account_inactive", "account_login", "account_logout", "mfa_authenticate", "mfa_login_webauthn",
            "openid_connect_callback", "openid_connect_login", "socialaccount_login_cancelled",
            "socialaccount_login_error",
        }
    ),
    "accounts of staff, and the frame of the administration": frozenset(
        {
            "admin:accounts_user_add", "admin:accounts_user_change", "admin:accounts_user_changelist",
            "admin:accounts_user_delete", "admin:accounts_user_history", "admin:app_list",
            "admin:auth_user_password_change", "admin:autocomplete", "admin:index", "admin:jsi18n",
            "admin:login", "admin:logout", "admin:password_change", "admin:password_change_done",
            "admin:view_on_site",
        }
    ),
    "refused to everyone: the trail is read only": frozenset(
        {
            "admin:audit_entry_add", "admin:audit_entry_delete", "admin:audit_remotecall_add",
            "admin:audit_remotecall_delete", "admin:audit_writeintent_add", "admin:audit_writeintent_delete",
        }
    ),
    "checks of the platform, figures without records, samples": frozenset(
        {
            "operations:favicon", "operations:healthz", "operations:metrics", "operations:readyz",
            "ui:components",
        }
    ),
}  # fmt: skip
"""Names of addresses by the reason for which nobody is recorded there."""


def log_page(request: HttpRequest, *, kind: str, uuid: str, label: str, borrower_uuid: str) -> None:
    """Record that this page about one borrower or person was shown."""
    saw(
        Actor.of(request),
        PAGES[_name_of(request)],
        kind=kind,
        uuid=uuid,
        label=label,
        borrower_uuid=borrower_uuid,
        detail={"page": _name_of(request)},
        is_repeat=BACKGROUND in request.headers,
    )


def log_record(request: HttpRequest, record: Record) -> None:
    """Record that this page about a record was shown."""
    owner = record.uuid if record.kind == Kind.BORROWER else record.borrower_uuid
    log_page(request, kind=record.kind, uuid=record.uuid, label=str(record), borrower_uuid=owner)


def log_list(request: HttpRequest, *, count: int | None) -> None:
    """Record that this list was shown: what was asked for and how many match, and none of them by name."""
    action, label = LISTS[_name_of(request)]
    query = {
        _plain(name): ", ".join(map(_plain, values))
        for name, values in islice(request.GET.lists(), MAX_NAMES)
    }
    saw(
        Actor.of(request),
        action,
        uuid=hashlib.sha256(f"{request.path} {query}".encode("utf-8", "replace")).hexdigest(),
        label=label,
        detail={"query": query, "count": count},
        is_repeat=BACKGROUND in request.headers,
    )


def _plain(text: str) -> str:
    """Text as every database keeps it."""
    return text.replace("\0", "")[:200]


def count_suggestions(request: HttpRequest) -> None:
    """Count what the search box suggested: one entry for a session."""
    session = hashlib.sha256(str(request.session.session_key).encode()).hexdigest()
    saw(
        Actor.of(request),
        "lookup.suggest",
        uuid=session,
        label="suggestions of the search box",
        repeats_within=None,
    )


def saw(
    actor: Actor,
    action: str,
    *,
    kind: str = "",
    uuid: str,
    label: str,
    borrower_uuid: str = "",
    shown: str = "",
    detail: Mapping[str, Any] | None = None,
    is_repeat: bool = False,
    repeats_within: timedelta | None = REPEAT,
) -> None:
    """Record that ``actor`` looks at something now, and with ``shown`` which answer of it is on the screen.

    A part that a page fetches for itself is a repeat: it is recorded where the page was not, and is not counted.
    """
    now, uuid = timezone.now(), uuid[:64]
    recent = _looks(actor, uuid)
    if repeats_within:
        recent = recent.filter(match_recent("first_at", repeats_within))
    if is_repeat and recent.exists():
        return
    same = recent.filter(entry__action=action)
    is_counted = write_if_possible(lambda: same.update(count=F("count") + 1, last_at=now, shown=shown))
    if is_counted or same.exists():  # That it cannot be counted now hides nothing: its entry is there.
        return
    subject = {
        "subject_kind": kind[:20],
        "subject_uuid": uuid,
        "subject_label": label[:300],
        "borrower_uuid": borrower_uuid[:64],
        "detail": dict(detail or {}),
    }
    try:
        with transaction.atomic():
            entry = append(actor, action, **subject)
            Sighting.objects.create(
                entry=entry,
                actor_id=actor.id or 0,
                actor_name=actor.name,
                subject_uuid=uuid,
                first_at=now,
                last_at=now,
                shown=shown,
            )
    except DatabaseError as error:
        is_kept = is_unavailable(error) and not connection.in_atomic_block
        if not (is_kept and view_spool.put(actor, action, subject)):
            raise
    else:
        if not connection.in_atomic_block:
            view_spool.replay()


def shows(actor: Actor, uuid: str, shown: str) -> None:
    """A part of the page that is being looked at was drawn again, from this answer."""
    recent = _page_looks(actor, uuid).filter(match_recent("first_at", REPEAT)).exclude(shown=shown)
    if recent.exists():
        write_if_possible(lambda: recent.update(shown=shown))


def last_look(actor: Actor, uuid: str) -> Sighting | None:
    """The look before the present one: changes are counted from there."""
    return _page_looks(actor, uuid).exclude(match_recent("first_at", REPEAT)).first()


def _looks(actor: Actor, uuid: str) -> QuerySet[Sighting]:
    return Sighting.objects.filter(actor_id=actor.id or 0, subject_uuid=uuid)


def _page_looks(actor: Actor, uuid: str) -> QuerySet[Sighting]:
    """Looks at the record's own page, which shows its answer."""
    return _looks(actor, uuid).filter(entry__action__endswith=".detail")


def _name_of(request: HttpRequest) -> str:
    match = request.resolver_match
    return match.view_name if match else ""
