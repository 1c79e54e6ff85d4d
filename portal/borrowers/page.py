"""One borrower's page: identity, position, and a tab for each thing that is known of it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import islice
from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone

from portal.accounts.roles import reason_for, requires
from portal.audit.models import Actor, Entry, Sighting, WriteIntent
from portal.audit.reading import history, lines
from portal.audit.sightings import saw
from portal.borrowers.handover import PERSONS, SECRETS, Sent, handover
from portal.borrowers.position import Position
from portal.borrowers.refreshing import progress
from portal.borrowers.timeline import KINDS, PAGE, timeline
from portal.gateway import StaffRequest
from portal.messaging.told import messages_of, messages_of_borrower
from portal.notes.models import FollowUp, Note
from portal.payments import Row, account_of, table
from portal.readings import Reading, copies_of, lists_of, show
from portal.registry import memory
from portal.registry.lists import known
from portal.registry.models import Kind, Record
from portal.ui.htmx import render_page
from servicing import Borrower, KeyPerson, Loan, Statement, sense

# More accounts than this are shown from copies; each has its own page, which asks.
ASKED = 12
TABS = {
    "overview": "Overview",
    "people": "People",
    "applications": "Applications & offers",
    "loans": "Loans",
    "lines": "Lines of credit",
    "repayments": "Repayments",
    "messages": "Messages",
    "notes": "Notes & follow-ups",
    "history": "History",
}
CARDS = ("card-loans", "card-lines", "card-last")
ALONE = (*CARDS, "card-next")
PROGRESS = ("refresh-all", "refresh-progress")
PANELS = (*ALONE, *PROGRESS, "borrower-tab")
FINDINGS = 5


@dataclass(frozen=True)
class Accounts:
    """What the borrower has, as known here."""

    applications: list[Record]
    loans: list[Record]
    lines: list[Record]

    @classmethod
    def of(cls, borrower_uuid: str) -> "Accounts":
        kinds = [Kind.APPLICATION, Kind.LOAN, Kind.LINE]
        records = Record.objects.filter(borrower_uuid=borrower_uuid, kind__in=kinds, archived_at__isnull=True)
        found: dict[str, list[Record]] = {kind: [] for kind in kinds}
        for record in records.order_by("-created_at", "-id"):
            found[record.kind].append(record)
        return cls(found[Kind.APPLICATION], found[Kind.LOAN], found[Kind.LINE])


@requires("borrowers.index")
def detail(request: StaffRequest, borrower_uuid: str) -> HttpResponse:
    """The page, one of its cards after asking the service, or one of its tabs."""
    record = get_object_or_404(Record, kind=Kind.BORROWER, uuid=borrower_uuid)
    accounts = Accounts.of(borrower_uuid)
    readings = read_accounts(request, accounts)
    loans, lines, lists = (readings[card] for card in CARDS)
    context = {"record": record, "position": Position(loans, lines, lists, today=timezone.localdate())}
    if request.htmx.target in PROGRESS:
        every = [one for one in (*loans, *lines, *lists) if one.is_asked]
        context |= {"progress": progress(every, request.GET.get("since", "")), "cards": CARDS}
    elif request.htmx.target not in ALONE:
        context |= whole(request, record, accounts, readings)
    saw(
        Actor.of(request),
        "borrowers.detail",
        kind=record.kind,
        uuid=record.uuid,
        label=str(record),
        borrower_uuid=record.uuid,
        is_repeat=bool(request.htmx) and request.htmx.target != "borrower-tab",
    )
    response = render_page(request, "borrowers/detail.html", context, partial=PANELS)
    if request.htmx.target in ("card-loans", "card-lines"):
        response["HX-Trigger"] = "account:read"
    return response


def whole(
    request: StaffRequest, record: Record, accounts: Accounts, readings: dict[str, list[Reading]]
) -> dict[str, Any]:
    """What the page shows beside its cards."""
    tab = request.GET.get("tab", "")
    tab = tab if tab in TABS else "overview"
    told = [*readings["card-loans"], *readings["card-lines"]]
    return {
        **identity(request, record),
        **tab_context(request, tab, record, accounts, readings),
        "tab": tab,
        "accounts": accounts,
        "readings": readings,
        "findings": list(islice(findings(told, timezone.localdate()), FINDINGS)),
    }


def read_accounts(request: StaffRequest, accounts: Accounts) -> dict[str, list[Reading]]:
    """The readings of each card: those for which the service is asked, then copies of all others."""
    loans, lines = accounts.loans[:ASKED], accounts.lines[:ASKED]
    lists = lists_of([*loans, *lines])
    readings = show(request, {"card-loans": loans, "card-lines": lines, "card-last": lists})
    for card, others in (("card-loans", accounts.loans[ASKED:]), ("card-lines", accounts.lines[ASKED:])):
        copies, told = copies_of(others)
        readings[card] += copies
        readings["card-last"] += told
    return readings


def findings(readings: Sequence[Reading], today: date) -> Iterator[tuple[Record, sense.Rule]]:
    """What does not add up in the copies of its accounts."""
    for one in readings:
        match one.answer:
            case Loan() as loan:
                yield from ((one.record, rule) for rule in sense.of_loan(loan, today))
            case Statement() as line:
                yield from ((one.record, rule) for rule in sense.of_line(line))


def identity(request: StaffRequest, record: Record) -> dict[str, Any]:
    """Who the borrower is, what warns, and what this person may do."""
    borrower = memory.last(record, Borrower)
    return {
        "borrower": borrower,
        "is_business": borrower.is_business if borrower else record.product not in PERSONS,
        "provider_url": https_only(borrower.provider_customer_url) if borrower else None,
        "open_writes": WriteIntent.objects.filter(borrower_uuid=record.uuid, state=WriteIntent.State.UNKNOWN),
        "pinned": Note.objects.filter(borrower_uuid=record.uuid, pinned_until__gte=timezone.localdate()),
        "acts": [act_button(request, record, *act) for act in ACTS],
        "why_not": {
            name: "" if request.can(act) else reason_for(act)
            for name, act in {
                "note": "notes.add",
                "open": "applications.open",
                "edit": "borrowers.edit",
                "add": "lookup.add",
            }.items()
        },
    }


# The first one is what a servicer comes for: its button is the filled one.
ACTS = [
    ("applications.submit", "New application", "plus", "a"),
    ("borrowers.edit", "Edit", "pencil", "e"),
    ("summaries.borrower", "Print summary", "printer", "p"),
    ("notes.add", "Add note", "sticker-2", "n"),
]


def act_button(
    request: StaffRequest, record: Record, act: str, words: str, icon: str, key: str
) -> dict[str, Any]:
    """A button with its address, or why it is disabled for this person."""
    address = {
        "applications.submit": lambda: reverse("applications:submit", args=[record.uuid]),
        "borrowers.edit": lambda: reverse("borrowers:edit", args=[record.uuid]),
        "notes.add": lambda: reverse("notes:add", args=[record.kind, record.uuid]),
        "summaries.borrower": lambda: reverse("summaries:borrower", args=[record.uuid]),
    }[act]()
    return {
        "url": address,
        "words": words,
        "icon": icon,
        "key": key,
        "is_primary": act == ACTS[0][0],
        "why_not": "" if request.can(act) else reason_for(act),
    }


def https_only(url: str | None) -> str | None:
    """An address from the service is a link only when it is https."""
    return url if url and url.lower().startswith("https://") else None


def tab_context(
    request: StaffRequest, tab: str, record: Record, accounts: Accounts, readings: dict[str, list[Reading]]
) -> dict[str, Any]:
    """The tabs with their counts, and what the open one shows."""
    people = list(known(Kind.KEY_PERSON).filter(borrower_uuid=record.uuid).order_by("created_at", "id"))
    entries = history(record.kind, record.uuid)
    notes = Note.objects.filter(borrower_uuid=record.uuid)
    follow_ups = FollowUp.objects.filter(borrower_uuid=record.uuid)
    repayments = repayments_in(readings["card-last"])
    counts = {
        "people": len(people),
        "applications": len(accounts.applications),
        "loans": len(accounts.loans),
        "lines": len(accounts.lines),
        "repayments": len(repayments) if readings["card-last"] else None,
        "notes": notes.count() + follow_ups.filter(done_at=None).count(),
        "history": entries.count(),
    }
    # An individual has no key people; those that are known all the same are not hidden.
    left_out = {"people"} if record.product in PERSONS and not people and tab != "people" else set()
    context: dict[str, Any] = {
        "tabs": [(name, words, counts.get(name)) for name, words in TABS.items() if name not in left_out]
    }
    match tab:
        case "overview":
            context |= overview(request, record, people, accounts, readings)
        case "people":
            sent = Sent.of([record.uuid])[record.uuid]
            context["people"] = [(one, memory.last(one, KeyPerson), secrets(one, sent)) for one in people]
        case "loans" | "lines":
            context["shown"] = readings[f"card-{tab}"]
        case "repayments":
            context["table"] = table(
                repayments,
                covers="of this borrower",
                number=request.GET.get("page"),
                beside=request.GET.get("payment"),
                messages_of=messages_of,
                today=timezone.localdate(),
            )
        case "messages":
            context["messages_told"] = messages_of_borrower(record)
        case "notes":
            context |= {"notes": notes[:200], "follow_ups": follow_ups[:200]}
        case "history":
            context |= {"lines": lines(entries[:100]), "may_read": request.can("audit.detail")}
    return context


def overview(
    request: StaffRequest,
    record: Record,
    people: Sequence[Record],
    accounts: Accounts,
    readings: dict[str, list[Reading]],
) -> dict[str, Any]:
    """Timeline, hand-over list, follow-ups, who looked."""
    kind = request.GET.get("events", "")
    shown = request.GET.get("shown", "")
    sent = Sent.of([record.uuid])[record.uuid]
    tasks = handover(record, people, accounts.applications, sent)
    return {
        "secrets": secrets(record, sent),
        "timeline": timeline(
            record,
            [*readings["card-lines"], *readings["card-last"]],
            kind=kind if kind in KINDS else "",
            shown=min(int(shown), 1000) if shown.isascii() and shown.isdigit() and len(shown) < 9 else PAGE,
        ),
        "events": kind,
        "changed": last_changes(record),
        "tasks": tasks,
        "tasks_done": sum(task.done_at is not None for task in tasks),
        "open_follow_ups": FollowUp.objects.filter(borrower_uuid=record.uuid, done_at=None)[:10],
        "sightings": Sighting.objects.filter(subject_uuid=record.uuid, entry__action="borrowers.detail")[:5],
    }


def secrets(person: Record, sent: Sent) -> dict[str, WriteIntent | None]:
    """When what the service never tells back was last sent of somebody."""
    return {field: sent.about(person, field) for field in SECRETS}


def last_changes(record: Record) -> dict[str, Entry]:
    """For each profile field the entry of its last confirmed change from here."""
    confirmed = WriteIntent.objects.filter(
        subject_uuid=record.uuid, operation="borrowers.update", state=WriteIntent.State.CONFIRMED
    )
    attempts = Entry.objects.filter(phase=Entry.Phase.ATTEMPT, intent_id__in=confirmed.values("pk"))
    found: dict[str, Entry] = {}
    for entry in attempts[:100]:
        for field in entry.changes:
            found.setdefault(field, entry)
    return found


def repayments_in(lists: Sequence[Reading]) -> list[Row]:
    """Every repayment of the borrower with the account it is on."""
    return [
        Row(repayment, account_of(one.record), why_null=one.record.why_null)
        for one in lists
        for repayment in one.repayments
    ]
