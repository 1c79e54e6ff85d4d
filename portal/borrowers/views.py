"""The list of known borrowers, and one borrower's page."""

from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import get_object_or_404

from portal.accounts.roles import requires
from portal.audit.models import Entry, WriteIntent
from portal.audit.sentences import sentence
from portal.gateway import StaffRequest
from portal.registry import memory
from portal.registry.lists import known, listing, positions
from portal.registry.models import Kind, Record
from portal.ui.htmx import render_page
from servicing import Borrower, KeyPerson, rules

SORTS = {"activity": "-updated_at", "name": "label", "created": "-created_at", "city": "city"}
ORDERS = {"activity": "Last activity", "name": "Name", "created": "Newest", "city": "City"}
FILTERS = ["entity", "state", "product"]


@requires("borrowers.index")
def index(request: StaffRequest) -> HttpResponse:
    """Borrowers known to this dashboard, with what each one has."""
    found = listing(known(Kind.BORROWER), request.GET, sorts=SORTS, filters=FILTERS)
    has = positions([row.uuid for row in found.page])
    context = {
        "listing": found,
        "rows": [(row, has[row.uuid]) for row in found.page],
        "entities": rules.ENTITIES,
        "states": rules.US_STATES,
        "sorts": ORDERS,
    }
    return render_page(request, "borrowers/index.html", context, partial="borrower-rows")


@requires("borrowers.index")
def detail(request: StaffRequest, borrower_uuid: str) -> HttpResponse:
    """Identity, key people and history of one borrower, from the last known copy."""
    record = get_object_or_404(Record, kind=Kind.BORROWER, uuid=borrower_uuid)
    entries = Entry.objects.filter(borrower_uuid=borrower_uuid)
    people = key_people(borrower_uuid)
    borrower = memory.last(record, Borrower)
    tabs = [
        ("overview", "Overview", None),
        ("people", "People", len(people)),
        ("history", "History", entries.count()),
    ]
    tab = request.GET.get("tab", "")
    context: dict[str, Any] = {
        "record": record,
        "borrower": borrower,
        "provider_url": https_only(borrower.provider_customer_url) if borrower else None,
        "people": people,
        "accounts": known_accounts(borrower_uuid),
        "open_writes": WriteIntent.objects.filter(
            borrower_uuid=borrower_uuid, state=WriteIntent.State.UNKNOWN
        ),
        "tabs": tabs,
        "tab": tab if tab in (name for name, _, _ in tabs) else "overview",
        "may_correct": request.can("lookup.correct"),
    }
    if context["tab"] == "history":
        context["rows"] = [(entry, sentence(entry)) for entry in entries[:100]]
    return render_page(request, "borrowers/detail.html", context, partial="borrower-tab")


def https_only(url: str | None) -> str | None:
    """An address from the service is a link only when it is https."""
    return url if url and url.lower().startswith("https://") else None


def known_accounts(borrower_uuid: str) -> QuerySet[Record]:
    """The borrower's applications, loans and lines that are known here, newest first."""
    kinds = [Kind.APPLICATION, Kind.LOAN, Kind.LINE]
    records = Record.objects.filter(kind__in=kinds, borrower_uuid=borrower_uuid, archived_at__isnull=True)
    return records.order_by("kind", "-created_at")[:50]


def key_people(borrower_uuid: str) -> list[tuple[Record, KeyPerson | None]]:
    """The key people known here, each with the last known copy."""
    records = known(Kind.KEY_PERSON).filter(borrower_uuid=borrower_uuid).order_by("created_at", "id")
    return [(record, memory.last(record, KeyPerson)) for record in records]
