"""One borrower's page: identity, position, and tabs for everything on file."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django_htmx.http import trigger_client_event

import servicing
from portal.accounts.roles import requires
from portal.approvals.lifecycle import open_approvals
from portal.audit.chain import entry_subject
from portal.audit.models import Actor, Entry, WriteIntent
from portal.audit.reading import entry_lines, record_entries
from portal.audit.view_log import log_view, viewers_of
from portal.borrowers import tasks
from portal.borrowers.account_panels import account_panels
from portal.borrowers.as_sent import profile_as_sent
from portal.borrowers.checklist import (
    INDIVIDUAL_TYPES,
    confirmed_writes,
    latest_secrets,
    onboarding_checklist,
)
from portal.borrowers.position import Position, worst_first
from portal.borrowers.timeline import KINDS, PAGE_ROWS, timeline
from portal.core.business_date import business_date
from portal.gateway.client import StaffRequest
from portal.gateway.panels import read_copies
from portal.gateway.reading import MAX_LIVE_ACCOUNTS, LiveCopy, account_copies, repayment_copies
from portal.messaging.payment_events import messages_of_borrower
from portal.notes.models import FollowUp, Note
from portal.records import store
from portal.records.models import LISTED, Account, Application, Borrower, KeyPerson, Kind
from portal.repayments.table import repayment_table, rows_of_lists
from portal.ui.htmx import render_page
from servicing import Loan, Statement, consistency

MAX_FINDINGS = 5
MAX_EVENTS = 1000
MAX_ACCOUNT_ROWS = 40
TABS = {
    "overview": "Overview",
    "people": "People",
    "applications": "Applications",
    "loans": "Loans",
    "lines": "Lines of credit",
    "repayments": "Repayments",
    "messages": "Messages",
    "notes": "Notes",
    "history": "History",
}
FOLLOWS = ("overview", "repayments")
"""Tabs that load again once an account was read; many accounts are rows that load themselves."""
CARDS = "position"
"""The part with all cards, as most of their figures depend on several accounts."""
PERSONAL_FIELDS = {"start_date": "start date", "website": "website", "industry": "industry"}
BUSINESS_FIELDS = {"entity": "business type"} | PERSONAL_FIELDS | {"start_date": "incorporation date"}
"""Fields that the profile lists on one line if the service doesn't provide them."""
Accounts = dict[str, list[Account]]
"""The borrower's records by kind, newest first."""
Copies = dict[str, list[LiveCopy]]


@requires("borrowers.index")
def detail(request: StaffRequest, borrower_uuid: str) -> HttpResponse:
    """Show the page, its cards, or one of its tabs, from saved copies; with few accounts, Refresh reads all."""
    record = get_object_or_404(Borrower.objects.select_related("answer"), uuid=borrower_uuid)
    accounts = accounts_of(borrower_uuid)
    live = [*accounts[Kind.LOAN], *accounts[Kind.LINE]]
    loads_all = len(live) <= MAX_LIVE_ACCOUNTS
    is_refresh = "refresh" in request.GET and loads_all and request.htmx.target in (None, CARDS)
    if is_refresh:
        read_copies(request, account_copies(*live), force=True)
        accounts = accounts_of(borrower_uuid)
    copies = saved_copies(accounts)
    position = Position(copies["loans"], copies["lines"], copies["lists"], loads_itself=loads_all)
    context: dict[str, Any] = {"record": record, "position": position, "max_rows": MAX_ACCOUNT_ROWS}
    if request.htmx.target != CARDS:
        found = findings([*copies["loans"], *copies["lines"]], copies["lists"])
        context |= identity(record) | {"findings": list(islice(found, MAX_FINDINGS))}
        context |= tab_context(request, record, accounts, copies)
        in_cards = position.accounts if loads_all else position.named_accounts
        context |= {
            "loads_all": loads_all,
            "tab_follows": context["tab"] in FOLLOWS or (loads_all and context["tab"] in ("loans", "lines")),
            "loading": account_panels(in_cards, copies["lists"]),
            "refresh_job": None if loads_all else tasks.open_refresh(borrower_uuid),
        }
    # A tab that follows the accounts loads itself.
    opens_tab = request.htmx.target == "borrower-tab" and request.htmx.trigger != "borrower-tab"
    is_repeat = bool(request.htmx) and not opens_tab
    log_view(Actor.of(request), "borrowers.detail", is_repeat=is_repeat, **entry_subject(record))
    response = render_page(
        request, "borrowers/detail.html", context, partial=(CARDS, "borrower-tab", "account-rows")
    )
    return trigger_client_event(response, "account:read") if is_refresh else response


def accounts_of(borrower_uuid: str) -> Accounts:
    records = Account.objects.filter(LISTED, borrower_uuid=borrower_uuid, kind__in=[Kind.LOAN, Kind.LINE])
    accounts: Accounts = defaultdict(list)
    for record in records.select_related("answer").order_by("-created_at", "-id"):
        accounts[record.kind].append(record)
    return accounts


def applications_of(borrower_uuid: str) -> list[Application]:
    found = Application.objects.filter(LISTED, borrower_uuid=borrower_uuid).select_related("answer")
    return list(found.order_by("-created_at", "-id"))


def saved_copies(accounts: Accounts) -> Copies:
    """The saved copies of loans, lines and, as far as anybody asked for them, their lists of repayments."""
    loans, lines = accounts[Kind.LOAN], accounts[Kind.LINE]
    lists = [one for one in repayment_copies([*loans, *lines]) if one.has_been_asked]
    return {"loans": [*map(LiveCopy, loans)], "lines": [*map(LiveCopy, lines)], "lists": lists}


def findings(
    accounts: Sequence[LiveCopy], lists: Sequence[LiveCopy]
) -> Iterator[tuple[Account, consistency.Rule]]:
    """The failed data checks of the accounts and their repayments."""
    repayments = {one.record.uuid: one.repayments for one in lists if one.at}
    for one in accounts:
        account = one.answer if isinstance(one.answer, Loan | Statement) else None
        of_loan = repayments.get(one.record.uuid) if isinstance(account, Loan) else None
        yield from (
            (one.record, rule)
            for rule in consistency.check_account(account, of_loan, one.copied_on or business_date())
        )


# --- Who the borrower is ---


def identity(record: Borrower) -> dict[str, Any]:
    sent = profile_as_sent(record)
    borrower = sent.profile if sent else store.last_answer(record, servicing.Borrower)
    url = borrower.provider_customer_url if borrower else None
    is_business = borrower.is_business if borrower else record.type not in INDIVIDUAL_TYPES
    fields = BUSINESS_FIELDS if is_business else PERSONAL_FIELDS
    return {
        "borrower": borrower,
        "sent": sent,
        "is_business": is_business,
        "not_provided": ", ".join(
            words for name, words in fields.items() if not getattr(borrower, name, None)
        ),
        # A website from the service becomes a link only if it is https.
        "provider_url": url if url and url.lower().startswith("https://") else None,
        "open_writes": WriteIntent.objects.filter(borrower_uuid=record.uuid, state=WriteIntent.State.UNKNOWN),
        "approvals": open_approvals(borrower_uuid=record.uuid),
        "pinned": Note.objects.filter(borrower_uuid=record.uuid, pinned_until__gte=business_date()),
    }


# --- The tabs ---


def tab_context(
    request: StaffRequest, record: Borrower, accounts: Accounts, copies: Copies
) -> dict[str, Any]:
    tab = request.GET.get("tab", "")
    tab = tab if tab in TABS else "overview"
    people = list(
        KeyPerson.objects.filter(LISTED, borrower_uuid=record.uuid)
        .select_related("answer")
        .order_by("created_at", "id")
    )
    sent = profile_as_sent(record)
    applications = applications_of(record.uuid)
    entries = record_entries(record.kind, record.uuid)
    notes = Note.objects.filter(borrower_uuid=record.uuid)
    follow_ups = FollowUp.objects.filter(borrower_uuid=record.uuid)
    repayments = rows_of_lists(copies["lists"], with_account=True)
    counts = {
        "people": len(people) or len(sent.people if sent else ()),
        "applications": len(applications),
        "loans": len(accounts[Kind.LOAN]),
        "lines": len(accounts[Kind.LINE]),
        "repayments": len(repayments) if copies["lists"] else None,
        "notes": notes.count() + follow_ups.filter(done_at=None).count(),
        "history": entries.count(),
    }
    # An individual has no key people, but any on file are shown.
    left_out = {"people"} if record.type in INDIVIDUAL_TYPES and not people and tab != "people" else set()
    context: dict[str, Any] = {
        "tab": tab,
        "tabs": [(name, words, counts.get(name)) for name, words in TABS.items() if name not in left_out],
    }
    match tab:
        case "overview":
            context |= overview(request, record, people, applications, copies)
        case "people":
            writes = confirmed_writes([record.uuid])[record.uuid]
            answers = [
                (one, store.last_answer(one, servicing.KeyPerson), latest_secrets(writes, one))
                for one in people
            ]
            context["people"] = answers
        case "applications":
            context["applications"] = applications
        case "loans" | "lines":
            context["shown"] = account_panels(worst_first(copies[tab]), copies["lists"])
        case "repayments":
            context["table"] = repayment_table(request, repayments, covers="of this borrower")
        case "messages":
            context["newest_messages"] = messages_of_borrower(record)
        case "notes":
            context |= {"notes": notes[:200], "follow_ups": follow_ups[:200]}
        case "history":
            lines = entry_lines(entries[:100])
            context |= {"lines": lines, "may_read": request.can("audit.detail"), "is_history": True}
    return context


def overview(
    request: StaffRequest,
    record: Borrower,
    people: Sequence[KeyPerson],
    applications: Sequence[Application],
    copies: Copies,
) -> dict[str, Any]:
    """Profile, timeline, onboarding checklist, follow-ups and recent views."""
    kind, shown = request.GET.get("events", ""), request.GET.get("shown", "")
    is_number = shown.isascii() and shown.isdigit() and len(shown) < 9
    writes = confirmed_writes([record.uuid])[record.uuid]
    tasks = onboarding_checklist(record, people, applications, writes)
    return {
        "people": people,
        "secrets": latest_secrets(writes, record),
        "timeline": timeline(
            record,
            [*copies["lines"], *copies["lists"]],
            kind=kind if kind in KINDS else "",
            shown=min(int(shown), MAX_EVENTS) if is_number else PAGE_ROWS,
        ),
        "events": kind,
        "changed": last_changes(record),
        "tasks": tasks,
        "tasks_done": sum(task.done_at is not None for task in tasks),
        "open_follow_ups": FollowUp.objects.filter(borrower_uuid=record.uuid, done_at=None)[:10],
        "views": viewers_of(record.uuid)[:5],
    }


def last_changes(record: Borrower) -> dict[str, Entry]:
    """The audit entry of the last confirmed change of each profile field."""
    confirmed = WriteIntent.objects.filter(
        subject_uuid=record.uuid, operation="borrowers.update", state=WriteIntent.State.CONFIRMED
    )
    attempts = Entry.objects.filter(phase=Entry.Phase.ATTEMPT, intent_id__in=confirmed.values("pk"))
    return {field: entry for entry in reversed(list(attempts[:100])) for field in entry.changes}
