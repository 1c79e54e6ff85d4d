"""Repayments that this dashboard knows: the list across borrowers, the same as a file, and one with its life."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import date, timedelta
from decimal import Decimal
from itertools import groupby, islice
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import (
    BigIntegerField,
    Count,
    DecimalField,
    ExpressionWrapper,
    F,
    Q,
    QuerySet,
    Sum,
)
from django.db.models.functions import Cast, Round, TruncMonth
from django.http import HttpResponse, QueryDict, StreamingHttpResponse
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.views.decorators.http import require_safe

from portal import payments
from portal.accounts.roles import requires
from portal.audit.chain import append
from portal.audit.models import Actor
from portal.audit.sightings import log_list, saw
from portal.gateway import StaffRequest
from portal.messaging.told import messages_of
from portal.payments import SCHEDULED, SUCCEEDED, Group, Opened, Row, Summary, Table
from portal.readings import REPAYMENTS_OF, Freshness, coverage, show
from portal.registry import memory
from portal.registry.lists import (
    COUNTED,
    DAYS,
    Ends,
    Filter,
    Listing,
    known,
    listing,
    occurring,
    with_borrowers,
)
from portal.registry.models import Kind, Record
from portal.registry.query import NotUnderstood, calendar_day
from portal.saved_views.menu import menu
from portal.ui import wording
from portal.ui.exports import list_file
from portal.ui.forms import MoneyField
from portal.ui.htmx import render_page
from servicing import Repayment

SORTS = {"effective": "-due_date", "amount": "-amount", "status": "status"}
ORDERS = {"effective": "By month", "amount": "Amount", "status": "Status"}
BATCH = 500
LISTS = (Kind.LOAN_REPAYMENTS, Kind.LINE_REPAYMENTS)
UPCOMING = "Upcoming"
# By the title of each group of rows: how many there are in all, and what succeeded comes to.
Months = Mapping[str, tuple[int, Decimal | None]]
UNITS = 10_000
"""Amounts are summed as whole ten-thousandths of a dollar: exact in every database."""
PART = 10**6
"""Their upper and lower digits are summed apart: a database's whole numbers end at nineteen digits."""
# Where an amount is absurd, no sum is told.
SUMMABLE = Q(amount__lt=10**14, amount__gt=-(10**14))


def _from(value: str) -> Q:
    return Q(due_date__gte=calendar_day(value))


def _to(value: str) -> Q:
    return Q(due_date__lte=calendar_day(value))


def _amount(value: str) -> Decimal:
    try:
        amount = MoneyField(required=False).clean(value)
    except ValidationError as problem:
        raise NotUnderstood(" ".join(problem.messages)) from None
    return amount or Decimal(0)


AMOUNTS = Ends("least", _amount, wording.AMOUNTS_TURNED_ROUND)
FILTERS = [
    Filter("product", "Product", lambda value: Q(product=value), lambda value: wording.human(value) or value),
    Filter("status", "Status", lambda value: Q(status=value), lambda value: wording.status(value).word),
    Filter("type", "Type", lambda value: Q(entity=value), lambda value: wording.human(value) or value),
    Filter("from", "From", _from, lambda value: wording.day(value) or value),
    Filter("to", "Until", _to, lambda value: wording.day(value) or value, DAYS),
    Filter("least", "At least", lambda value: Q(amount__gte=_amount(value))),
    Filter("most", "At most", lambda value: Q(amount__lte=_amount(value)), ends=AMOUNTS),
    Filter("error", "Failed or with an error", lambda value: Q(flagged__in=[True]), lambda value: "yes"),
]


# Views that every list of repayments begins with.
VIEWS = {
    "Returned": "status=FAILED_AFTER_SUCCESS",
    "Failed or with an error": "error=yes",
    "Scheduled": "status=SCHEDULED",
}


@require_safe
@requires("repayments.index")
def index(request: StaffRequest) -> HttpResponse:
    """The list with search, filters and paging, from the registry."""
    found = repayments(request.GET)
    log_list(request, count=found.total)
    beside = opened(request.GET.get("payment", ""))
    if beside:
        look(request, beside.record)
    context = {
        "listing": found,
        "table": table_of(found, beside),
        "orders": ORDERS,
        "coverage": coverage(*LISTS),
        "views": menu(request.user, "repayments:index", found.query_string, VIEWS),
        **options(),
    }
    return render_page(request, "repayments/index.html", context, partial="repayment-rows")


@require_safe
@requires("repayments.index")
def export(request: StaffRequest) -> StreamingHttpResponse:
    """The shown page, or with ``all`` everything that the filters leave."""
    found = repayments(request.GET)
    is_whole = "all" in request.GET
    records: Iterable[Record] = found.found.iterator(BATCH) if is_whole else found.page
    append(
        Actor.of(request),
        "repayments.export",
        subject_label="all that match" if is_whole else "one page",
        detail={
            "query": found.query,
            "filters": dict(found.filters),
            "rows": found.found.count() if is_whole else len(found.page),
        },
    )
    return list_file(request, "repayments", payments.COLUMNS, map(payments.cells, rows_of(records)))


@require_safe
@requires("repayments.detail")
def detail(request: StaffRequest, repayment_uuid: str) -> HttpResponse:
    """One repayment from the copy of its list, or after asking the service for that list."""
    record = get_object_or_404(Record, kind=Kind.REPAYMENT, uuid=repayment_uuid)
    fresh = None
    if listed := Record.objects.filter(kind__in=REPAYMENTS_OF.values(), uuid=record.parent_uuid).first():
        fresh = Freshness(show(request, {"repayment": [listed]})["repayment"])
        record.refresh_from_db()
    (row,) = rows_of([record])
    look(request, record)
    context = {
        "record": record,
        "row": row,
        "fresh": fresh,
        "opened": Opened(row, record, messages_of(record.uuid)),
    }
    return render_page(request, "repayments/detail.html", context, partial="repayment")


def opened(uuid: str) -> Opened | None:
    """The repayment that stands open beside the list, whatever page of the list it is on."""
    record = memory.find(Kind.REPAYMENT, uuid) if memory.IDENTIFIER.fullmatch(uuid) else None
    return Opened(next(rows_of([record])), record, messages_of(uuid)) if record else None


def look(request: StaffRequest, record: Record) -> None:
    """Somebody reads all that was told of a repayment."""
    saw(
        Actor.of(request),
        "repayments.detail",
        kind=record.kind,
        uuid=record.uuid,
        label=f"repayment {record.uuid[:8]}",
        borrower_uuid=record.borrower_uuid,
        is_repeat=bool(request.htmx),
    )


def repayments(state: QueryDict) -> Listing:
    """What the query string asks for, but for what stands open beside the list."""
    state = state.copy()
    state.pop("payment", None)
    return listing(
        known(Kind.REPAYMENT),
        state,
        sorts=SORTS,
        filters=FILTERS,
        kinds=[Kind.REPAYMENT],
        ahead=_is_upcoming(timezone.localdate()),
        by_borrower=True,
    )


def options() -> dict[str, Any]:
    """The values that the selects offer: those that occur, whatever the service calls them."""
    products, statuses, types = (
        occurring(Kind.REPAYMENT, column) for column in ("product", "status", "entity")
    )
    named = [(status, wording.status(status).word) for status in statuses]
    return {"products": products, "statuses": named, "types": types}


def rows_of(records: Iterable[Record]) -> Iterator[Row]:
    """Repayments with their account and their borrower, a batch at a time."""
    left = iter(records)
    while batch := list(islice(left, BATCH)):
        parents = {record.parent_uuid for record in batch}
        accounts = Record.objects.filter(kind__in=REPAYMENTS_OF, uuid__in=parents)
        by_uuid = {account.uuid: account for account in accounts}
        for record, borrower in with_borrowers(batch):
            told = memory.last(record, Repayment) or _by_columns(record)
            account = by_uuid.get(record.parent_uuid)
            yield Row(told, account, borrower or _unknown(record), record.why_null)


def _by_columns(record: Record) -> Repayment:
    """A repayment of which no answer is kept, from what lists keep of it."""
    return Repayment(
        uuid=record.uuid,
        product=record.product or None,
        payment_type=record.entity or None,
        effective_date=record.due_date,
        amount=record.amount,
        status=record.status or None,
    )


def _unknown(record: Record) -> Record | None:
    """The borrower of whom only the identifier is known."""
    uuid = record.borrower_uuid
    return Record(kind=Kind.BORROWER, uuid=uuid, label=uuid[:8]) if uuid else None


# --- The table of one page, with sums over all that match ---


def table_of(found: Listing, beside: Opened | None = None) -> Table:
    """One page of the list, by month what is to come on top; in any other order as one group.

    Of many it says how many there are, and adds up nothing: that would be the slowest part of the page.
    """
    today, matching = timezone.localdate(), found.found.order_by()
    rows, covers = list(rows_of(found.page)), "found" if found.filtered else "known here"
    is_added_up = found.total < COUNTED
    if found.sort.removeprefix("-") == "effective":
        groups = _by_month(rows, _counted(matching, rows, today) if is_added_up else {}, today)
    else:
        title = f"By {ORDERS[found.sort.removeprefix('-')].lower()}"
        groups = [Group(title, rows, found.total if is_added_up else None, None, True)]
    summary = _summary(matching, today, "" if is_added_up else found.total_words)
    return Table(found.page, groups if rows else [], summary, covers, beside)


def _by_month(rows: list[Row], counted: Months, today: date) -> list[Group]:
    groups = []
    for title, month in groupby(
        rows, lambda row: UPCOMING if row.is_upcoming(today) else payments.month_of(row)
    ):
        number, succeeded = counted.get(title, (None, None))
        groups.append(Group(title, list(month), number, succeeded, title == UPCOMING))
    return groups


def _is_upcoming(today: date) -> Q:
    return Q(status__iexact=SCHEDULED, due_date__gte=today)


def _counted(matching: QuerySet[Record], rows: list[Row], today: date) -> Months:
    """How many repayments each of the page's months has, and what succeeded comes to; how many are to come."""
    past = [row for row in rows if not row.is_upcoming(today)]
    return {UPCOMING: (matching.filter(_is_upcoming(today)).count(), None), **_months(matching, past, today)}


def _months(matching: QuerySet[Record], rows: list[Row], today: date) -> Months:
    days = [row.repayment.effective_date for row in rows if row.repayment.effective_date]
    if not days:
        return {}
    first, last = min(days).replace(day=1), max(days) + timedelta(days=31)
    span = matching.exclude(_is_upcoming(today)).filter(due_date__gte=first, due_date__lte=last)
    succeeded = Q(status__iexact=SUCCEEDED)
    found = (
        span.annotate(month=TruncMonth("due_date"))
        .values_list("month")
        .annotate(
            number=Count("pk"),
            told=Count("amount", filter=succeeded & SUMMABLE),
            paid=Count("pk", filter=succeeded),
            **_sums(succeeded),
        )
    )
    return {
        f"{month:%B} {month.year}": (number, _exact(*sums) if told == paid else None)
        for month, number, told, paid, *sums in found
    }


def _summary(matching: QuerySet[Record], today: date, too_many: str) -> Summary:
    found = matching.values_list("status").annotate(
        number=Count("pk"), told=Count("amount", filter=SUMMABLE), **_sums(Q())
    )
    counts = [
        payments.Count(status.upper(), number, _exact(*sums) if told == number else None)
        for status, number, told, *sums in (() if too_many else found)
    ]
    upcoming = matching.filter(_is_upcoming(today)).order_by("due_date", "id")
    following = upcoming.values_list("due_date", "amount").first() or (None, None)
    return Summary(
        sorted(counts, key=lambda count: -count.number),
        *following,
        too_many,
    )


def _sums(condition: Q) -> dict[str, Sum]:
    scaled = ExpressionWrapper(
        F("amount") * UNITS, output_field=DecimalField(max_digits=24, decimal_places=4)
    )
    units = Cast(Round(scaled), BigIntegerField())
    parts = {"upper": units / PART, "lower": units % PART}
    return {
        name: Sum(ExpressionWrapper(part, BigIntegerField()), filter=condition & SUMMABLE)
        for name, part in parts.items()
    }


def _exact(upper: int | None, lower: int | None) -> Decimal:
    return Decimal((upper or 0) * PART + (lower or 0)) / UNITS
