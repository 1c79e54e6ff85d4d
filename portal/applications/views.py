"""Applications that this desk knows, across borrowers: the list, and the same as CSV."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from itertools import islice
from typing import Any

from django.db.models import Q
from django.http import HttpResponse, QueryDict, StreamingHttpResponse
from django.views.decorators.http import require_safe

from portal.accounts.roles import requires
from portal.audit.chain import append
from portal.audit.models import Actor
from portal.audit.sightings import log_list
from portal.gateway import StaffRequest
from portal.readings import Reading, coverage
from portal.registry import memory
from portal.registry.lists import DAYS, Filter, Listing, known, listing, occurring, with_borrowers
from portal.registry.models import Kind, Record
from portal.registry.query import calendar_day, midnight
from portal.saved_views.menu import menu
from portal.ui import wording
from portal.ui.exports import list_file
from portal.ui.htmx import render_page
from servicing import Application, RemoteTime

SORTS = {"created": "-created_at", "amount": "-amount", "decision": "status", "product": "product"}
NOT_TOLD = "none"
BATCH = 500
COLUMNS = [
    *(
        "Application",
        "Borrower",
        "Borrower identifier",
        "Product",
        "Requested",
        "Decision",
        "Offers",
        "Best APR",
    ),
    *("Created", "Known here since", "Made known by"),
]


def product(value: str) -> str:
    return "not told" if value == NOT_TOLD else wording.human(value) or value


def decision(value: str) -> str:
    return "not told" if value == NOT_TOLD else wording.status(value).word


def _from(value: str) -> Q:
    return Q(created_at__gte=midnight(calendar_day(value)))


def _to(value: str) -> Q:
    return Q(created_at__lt=midnight(calendar_day(value) + timedelta(days=1)))


FILTERS = [
    Filter("product", "Product", lambda value: Q(product="" if value == NOT_TOLD else value), product),
    Filter("status", "Decision", lambda value: Q(status="" if value == NOT_TOLD else value), decision),
    Filter("from", "Known here from", _from, lambda value: wording.day(value) or value),
    Filter("to", "Known here until", _to, lambda value: wording.day(value) or value, DAYS),
]


# Views that every list of applications begins with.
VIEWS = {"Approved": "status=APPROVED", "New this week": "q=created:this-week"}


@dataclass(frozen=True)
class Row:
    """One application of the list, with its borrower and its last answer where they are known."""

    record: Record
    borrower: Record | None
    answer: Application | None

    @property
    def trouble(self) -> str:
        """That the service does not give it, in a word or two."""
        if not self.record.failing_since:
            return ""
        return "Refused" if Reading(self.record).is_refused else "Not answering"

    @property
    def offers(self) -> int | None:
        """How many offers it has; ``None`` while it was never read."""
        return len(self.answer.offers) if self.answer else None

    @property
    def created(self) -> RemoteTime | None:
        """When it was made, in the service's words."""
        return self.answer.created_at if self.answer else None

    @property
    def best_apr(self) -> Decimal | None:
        """The lowest APR; none where an offer does not tell its own."""
        rates = [offer.apr for offer in self.answer.offers] if self.answer else []
        told = [rate for rate in rates if rate is not None]
        return min(told) if told and len(told) == len(rates) else None


@require_safe
@requires("applications.index")
def index(request: StaffRequest) -> HttpResponse:
    """The list with search, filters and paging, from the registry."""
    found = applications(request.GET)
    log_list(request, count=found.total)
    context = {
        "listing": found,
        "rows": list(rows_of(found.page)),
        "products": [(value, product(value)) for value in occurring(Kind.APPLICATION, "product")],
        "decisions": [(value, decision(value)) for value in occurring(Kind.APPLICATION, "status")],
        "coverage": coverage(Kind.APPLICATION),
        "views": menu(request.user, "applications:index", found.query_string, VIEWS),
    }
    return render_page(request, "applications/index.html", context, partial="application-rows")


@require_safe
@requires("applications.index")
def export(request: StaffRequest) -> StreamingHttpResponse:
    """The shown page, or with ``all`` everything that the filters leave."""
    found = applications(request.GET)
    is_whole = "all" in request.GET
    records: Iterable[Record] = found.found.iterator(BATCH) if is_whole else found.page
    append(
        Actor.of(request),
        "applications.export",
        subject_label="all that match" if is_whole else "one page",
        detail={
            "query": found.query,
            "filters": dict(found.filters),
            "rows": found.found.count() if is_whole else len(found.page),
        },
    )
    return list_file(request, "applications", COLUMNS, map(csv_row, rows_of(records)))


def applications(state: QueryDict) -> Listing:
    """What the query string asks for."""
    records, kinds = known(Kind.APPLICATION), [Kind.APPLICATION]
    return listing(records, state, sorts=SORTS, filters=FILTERS, kinds=kinds, by_borrower=True)


def rows_of(records: Iterable[Record]) -> Iterator[Row]:
    """Records with what the list shows of them, a batch at a time."""
    left = iter(records)
    while batch := list(islice(left, BATCH)):
        for record, borrower in with_borrowers(batch):
            yield Row(record, borrower, memory.last(record, Application))


def csv_row(row: Row) -> list[Any]:
    """One line of the file, in the order of the columns."""
    record = row.record
    return [
        record.uuid,
        str(row.borrower or ""),
        record.borrower_uuid,
        record.product,
        record.amount,
        record.status,
        row.offers,
        row.best_apr,
        row.created and row.created.text,
        record.created_at.isoformat(timespec="seconds"),
        record.created_by,
    ]
