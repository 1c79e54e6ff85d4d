"""Repayments on file: the list, its file, and one repayment with its history."""

from calendar import monthrange
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from itertools import groupby
from typing import NamedTuple

from django.db.models import Count, Q, QuerySet
from django.db.models.functions import TruncMonth
from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_safe

from portal.accounts.roles import requires
from portal.audit.chain import entry_subject
from portal.audit.models import Actor
from portal.audit.view_log import log_view
from portal.core.business_date import business_date
from portal.gateway.client import StaffRequest
from portal.gateway.panels import Freshness, panel_copies
from portal.gateway.reading import repayment_copies
from portal.records.models import Kind, Repayment
from portal.records.rows import distinct_values
from portal.records.store import IDENTIFIER
from portal.repayments.list_page import REPAYMENTS, is_upcoming, load_rows
from portal.repayments.sums import dollars, is_collected, sum_of, with_totals
from portal.repayments.table import (
    SCHEDULED,
    UPCOMING,
    MonthGroup,
    OpenRepayment,
    RepaymentRow,
    RepaymentTable,
    month_title,
)
from portal.tables.filters import NONE
from portal.tables.pages import Listing
from portal.ui import wording
from portal.ui.attention import Amount
from portal.ui.htmx import render_page
from portal.ui.paging import MAX_COUNTED, UpcomingLast
from portal.ui.query_strings import query_before

Months = Mapping[str, tuple[int, Decimal | None]]
"""By title of a group: its number of rows in all, and the sum of the successful ones."""
StatusCounts = dict[str, tuple[int | None, Amount | None]]
"""For each status the number and the sum of its repayments; None if there are too many, or amounts are absurd."""
PANEL = "repayment"
UNKNOWN = Count("pk", filter=Q(amount__isnull=True))


@require_safe
@requires("repayments.index")
def index(request: StaffRequest) -> HttpResponse:
    """Show the list by month, with one repayment open beside it."""
    opened = find_open(request.GET.get("payment", ""))
    if opened:
        log_repayment_view(request, opened.record)
    return REPAYMENTS.index(request, table=lambda found: list_table(found, opened), tabs=status_tabs)


@require_safe
@requires("repayments.detail")
def detail(request: StaffRequest, repayment_uuid: str) -> HttpResponse:
    """Show one repayment from the saved list of its account, or after a call for that list."""
    found = Repayment.objects.select_related("account")
    record, fresh = get_object_or_404(found, uuid=repayment_uuid), None
    if record.account:
        saved = repayment_copies([record.account])
        copies = panel_copies(request, PANEL, saved)
        fresh = Freshness(copies)
        if copies is not saved:  # The list was read, and may say something else about this repayment.
            record.refresh_from_db(from_queryset=found)
    (row,) = load_rows([record])
    log_repayment_view(request, record)
    context = {"record": record, "row": row, "fresh": fresh, "opened": OpenRepayment(row, record)}
    return render_page(request, "repayments/detail.html", context, partial=PANEL)


def find_open(uuid: str) -> OpenRepayment | None:
    """The repayment that is open beside the list, on any page of the list."""
    found = Repayment.objects.select_related("account").filter(uuid=uuid)
    record = found.first() if IDENTIFIER.fullmatch(uuid) else None
    return OpenRepayment(next(load_rows([record])), record) if record else None


def log_repayment_view(request: StaffRequest, record: Repayment) -> None:
    subject = entry_subject(record, f"repayment {record.uuid[:8]}")
    log_view(Actor.of(request), "repayments.detail", is_repeat=bool(request.htmx), **subject)


# --- The table of one page, with sums over all that match ---


def list_table(found: Listing, opened: OpenRepayment | None) -> RepaymentTable:
    """Build one page of the list by month, upcoming repayments last; in any other order, as one group.

    Too many repayments are not counted by month and status, which would be the slowest part of the page.
    """
    today = business_date()
    rows, covers = list(REPAYMENTS.rows(found.page)), "found" if found.is_filtered else "on file"
    is_added_up, sort = found.total < MAX_COUNTED, found.sort.removeprefix("-")
    if sort == "effective":
        groups = _by_month(rows, _counted(found, rows, today) if is_added_up else {}, today)
    else:
        title = f"By {REPAYMENTS.sort_names[sort].lower()}"
        groups = [MonthGroup(title, rows, found.total if is_added_up else None, None, is_mixed=True)]
    query = query_before(found.state, "payment")
    return RepaymentTable(
        found.page, groups if rows else [], covers, query, opened=opened, is_of_one_status=bool(found.tab)
    )


class StatusTab(NamedTuple):
    """One status with the number and the sum of its repayments; None if too many to count or impossible to add."""

    value: str
    words: str
    number: int | None
    amount: Amount | None
    link: str
    is_chosen: bool


def status_tabs(listing: Listing) -> list[StatusTab]:
    """Build the tabs: all that match the other filters, the scheduled ones, each other status, and the chosen one."""
    found = listing.without_tab()
    counts: StatusCounts
    if found.total < MAX_COUNTED:
        counts = found.add_up("statuses", lambda: _by_status(found))
    else:
        counts = dict.fromkeys(distinct_values(Kind.REPAYMENT, "status"), (None, None))
    if listing.tab:
        counts = {"" if listing.tab == NONE else listing.tab: (0, None)} | counts
    tabs = [StatusTab("", "All", found.total, None, listing.link(status=None), not listing.tab)]
    for status in sorted(counts, key=lambda status: (status != SCHEDULED, status)):
        value, words = (status, wording.status_word(status)) if status else (NONE, "No status")
        tabs.append(
            StatusTab(value, words, *counts[status], listing.link(status=value), value == listing.tab)
        )
    return tabs


def _by_status(found: Listing) -> StatusCounts:
    counts: StatusCounts = {}
    by_status = with_totals(found.found.order_by().values_list("status"), Q())
    for status, number, wanted, summed, *parts, unknown in by_status.annotate(unknown=UNKNOWN):
        is_known = wanted == summed + unknown
        counts[status] = number, Amount(dollars(*parts), unknown) if is_known else None
    return counts


def _by_month(rows: list[RepaymentRow], counted: Months, today: date) -> list[MonthGroup]:
    groups = []
    for title, month in groupby(rows, lambda row: UPCOMING if row.is_upcoming(today) else month_title(row)):
        number, succeeded = counted.get(title, (None, None))
        groups.append(MonthGroup(title, list(month), number, succeeded, title == UPCOMING))
    return groups


def _counted(found: Listing, rows: list[RepaymentRow], today: date) -> Months:
    """Count upcoming repayments, and those in each month of the page."""
    rows_in_order, matching = found.paginator.object_list, found.found.order_by()
    is_split = isinstance(rows_in_order, UpcomingLast)
    upcoming = rows_in_order.upcoming_count if is_split else matching.filter(is_upcoming(today)).count()
    days = [row.repayment.effective_date for row in rows if not row.is_upcoming(today)]
    dates = [day for day in days if day]
    if not dates:
        return {UPCOMING: (upcoming, None)}
    first, last = min(dates).replace(day=1), max(dates)
    last = last.replace(day=monthrange(last.year, last.month)[1])
    span = matching.exclude(is_upcoming(today)).filter(effective_on__gte=first, effective_on__lte=last)
    return {UPCOMING: (upcoming, None), **found.add_up(f"{first} {last}", lambda: _months(span))}


def _months(span: QuerySet[Repayment]) -> dict[str, tuple[int, Decimal | None]]:
    months = span.annotate(month=TruncMonth("effective_on")).values_list("month")
    totals = with_totals(months, is_collected())
    return {f"{month:%B} {month.year}": (number, sum_of(*sums)) for month, number, *sums in totals}
