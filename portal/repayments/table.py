"""The table of repayments on the pages of a loan, a line and a borrower, and in the list of all.

Hides the order, how months are grouped and summed, and statuses in words. A sum with a missing part is left out, and
an amount that the service did not split is never shown as zeros.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cached_property
from itertools import groupby
from typing import Any, NamedTuple

from django.core.paginator import Page, Paginator
from django.http import HttpRequest
from django.urls import reverse

import servicing
from portal.core.business_date import business_date
from portal.gateway.reading import LiveCopy
from portal.messaging.payment_events import messages_of_repayment
from portal.records.models import Account, Borrower, Repayment
from portal.records.repayments import RETURNED
from portal.repayments.follows import WhatFollows, what_follows
from portal.repayments.history import HistoryEntry, payment_history
from portal.ui import wording
from portal.ui.query_strings import query_before
from servicing import codec, consistency
from servicing.repayments import is_collected
from servicing.schedules import total
from servicing.values import decimal_or_none, is_same_word
from servicing.words import normal_word

PAGE_SIZE, ACCOUNT_PAGE_SIZE = 25, 12
SCHEDULED, SUCCEEDED = "SCHEDULED", "SUCCEEDED"
USUAL_TYPE = "SINGLE_PAYMENT"
UPCOMING = "Scheduled"
PARTS = ("principal", "interest", "fees", "suspense")
PART_COLUMNS = {name: name.replace("_", " ").capitalize() for name in (*PARTS, "ending_balance")}
BAR_WIDTH = 100
AMOUNTS = {name: name.replace("_", " ") for name in ("amount", *PARTS, "ending_balance")}
DETAILS = {
    "payment_type": "type",
    "initiation_date": "initiated",
    "completion_date": "completed",
    "should_commit_to_servicing": "pending posting to servicing",
    "ach_batch_id": "ACH batch",
    "ach_id": "ACH ID",
    "borrower_bank_account_uuid": "bank account",
}


class AmountPart(NamedTuple):
    """One part of a payment, and its position in the bar."""

    name: str
    amount: Decimal
    start: Decimal
    width: Decimal


def accounts_with_balances(rows: Iterable["RepaymentRow"]) -> set[str]:
    """The accounts whose ending balances follow one another from row to row, earliest row first.

    Each balance is the one before it less the row's principal if the payment succeeded, or less its amount if the
    service gives no principal; other rows leave it as it is. Draws and charges, which aren't listed, break this.
    """
    accounts: dict[str, list[RepaymentRow]] = {}
    for row in rows:
        accounts.setdefault(row.account.uuid if row.account else "", []).append(row)
    return {uuid for uuid, of_account in accounts.items() if _follow_one_another(of_account)}


def _follow_one_another(rows: Iterable["RepaymentRow"]) -> bool:
    expected: Decimal | None = None
    is_any = False
    for row in rows:
        balance = decimal_or_none(row.repayment.ending_balance)
        if row.status == SUCCEEDED:
            principal = decimal_or_none(row.repayment.principal)
            paid = decimal_or_none(row.repayment.amount) if principal is None else principal
            if is_any and (balance is None or paid is None):
                return False
            expected = expected - paid if expected is not None and paid is not None else None
        if balance is not None:
            if expected is not None and balance != expected:
                return False
            expected, is_any = balance, True
    return is_any


@dataclass(frozen=True)
class RepaymentRow:
    """One repayment, with its account and borrower unless the page is about them."""

    repayment: servicing.Repayment
    account: Account | None = None
    borrower: Borrower | None = None
    why_null: str = ""
    """Why a value is missing."""
    copied_on: date | None = None
    """The business date of the answer that it is from."""

    @property
    def url(self) -> str:
        return reverse("repayments:detail", args=[self.repayment.uuid])

    @cached_property
    def status(self) -> str:
        return normal_word(self.repayment.status)

    @property
    def words(self) -> str:
        return wording.status_word(self.status) if self.status else "No status"

    @property
    def reason(self) -> str:
        """Why it failed, in the service's words, or that it gave no reason."""
        has_failed = bool(self.status) and wording.status(self.status).state == "bad"
        return (self.repayment.error_description or "").strip() or ("no reason given" if has_failed else "")

    @property
    def parts(self) -> list[AmountPart]:
        """The parts of a payment for its bar; empty if the service did not split it."""
        known = {name: decimal_or_none(getattr(self.repayment, name)) for name in PARTS}
        amounts = {name: amount for name, amount in known.items() if amount is not None}
        whole = sum(amounts.values(), Decimal(0))
        if not {"principal", "interest"} <= amounts.keys() or whole <= 0 or min(amounts.values()) < 0:
            return []
        parts: list[AmountPart] = []
        start = Decimal(0)
        for name, amount in amounts.items():
            width = round(amount * BAR_WIDTH / whole, 1)
            parts.append(AmountPart(name, amount, start, width))
            start += width
        return parts

    @property
    def unusual_type(self) -> str:
        """Its type, unless it is a single payment or the status says the same."""
        payment_type = self.repayment.payment_type or ""
        is_said = self.status == RETURNED and is_same_word(payment_type, "RETURNED")
        return "" if is_said or is_same_word(payment_type, USUAL_TYPE) else payment_type

    @property
    def is_of_returned_type(self) -> bool:
        """Whether its type, but not its status, says that it was returned."""
        return normal_word(self.repayment.payment_type) == "RETURNED" and self.status != RETURNED

    @property
    def amounts(self) -> dict[str, Any]:
        """The amounts that the service provides, by label, without parts that are zero."""
        amounts = {name: getattr(self.repayment, name) for name in AMOUNTS}
        return {
            AMOUNTS[name]: amount
            for name, amount in amounts.items()
            if amount or (amount is not None and name not in PARTS)
        }

    @property
    def not_provided(self) -> str:
        """The labels of amounts that the service doesn't provide."""
        values = {words: getattr(self.repayment, name) for name, words in (AMOUNTS | DETAILS).items()}
        return ", ".join(words for words, value in values.items() if value in (None, ""))

    @property
    def findings(self) -> list[consistency.Rule]:
        """The failed data checks."""
        return consistency.check_repayment(self.repayment)

    def is_upcoming(self, today: date) -> bool:
        day = self.repayment.effective_date
        return self.status == SCHEDULED and day is not None and day >= today


class StatusCount(NamedTuple):
    """The number and the sum of repayments with a status; the sum is None if an amount is missing."""

    status: str
    number: int
    amount: Decimal | None

    @property
    def words(self) -> str:
        return f"{self.number:,}"


@dataclass(frozen=True)
class Summary:
    """The repayments of a table by status, and the next one."""

    counts: Sequence[StatusCount]
    next_day: date | None = None
    next_amount: Decimal | None = None

    @property
    def number(self) -> int:
        return sum(count.number for count in self.counts)

    @property
    def words(self) -> str:
        return f"{self.number:,} repayment{'' if self.number == 1 else 's'}"


@dataclass(frozen=True)
class MonthGroup:
    """The rows of a month on one page, with the totals of the whole month."""

    title: str
    rows: Sequence[RepaymentRow]
    number: int | None
    """The number in the whole month; None if not counted."""
    succeeded: Decimal | None
    is_mixed: bool = False
    """Whether it isn't a month (upcoming payments, or a list in another order) and so has no subtotal."""


@dataclass(frozen=True)
class OpenRepayment:
    """The repayment that is open beside its list or on its own page."""

    row: RepaymentRow
    record: Repayment

    @property
    def history(self) -> list[HistoryEntry]:
        return payment_history(self.record, messages_of_repayment(self.record.uuid))

    @property
    def follows(self) -> WhatFollows | None:
        return what_follows([self.record])[self.record.pk] if self.record.has_failed else None

    @property
    def raw(self) -> Any:
        return codec.parse(self.record.body) if self.record.body else {}


@dataclass(frozen=True)
class RepaymentTable:
    """One page of repayments, as ``ui/repayments.html#table`` draws it."""

    page: Page[Any]
    groups: Sequence[MonthGroup]
    covers: str
    """What the table is about, such as "of this loan"."""
    query: str
    """The query string to which a row's link adds its repayment."""
    summary: Summary | None = None
    """The summary of an account's or a borrower's repayments; the list of all has tabs instead."""
    opened: OpenRepayment | None = None
    is_of_one_status: bool = False
    """Whether all repayments, on every page, have the one status shown above the table."""

    @cached_property
    def has_status(self) -> bool:
        rows = [row for group in self.groups for row in group.rows]
        return not self.is_of_one_status or any(row.reason or row.findings for row in rows)

    @property
    def width(self) -> int:
        return 2 + self.has_status + len(self.part_columns) + self.has_accounts + self.has_borrowers

    @property
    def has_group_heads(self) -> bool:
        """Whether group headers say more than the day of their only row."""
        return any(group.number != 1 for group in self.groups)

    @cached_property
    def part_columns(self) -> dict[str, str]:
        """The parts that are not zero in any row of the page, with their column headers."""
        rows = [row.repayment for group in self.groups for row in group.rows]
        return {name: head for name, head in PART_COLUMNS.items() if any(getattr(row, name) for row in rows)}

    @cached_property
    def bank(self) -> str:
        """The bank account that all rows share, to name it once in the summary."""
        rows = [row for group in self.groups for row in group.rows]
        banks = {row.repayment.borrower_bank_account_uuid for row in rows}
        return str(banks.pop() or "") if self.summary and len(banks) == 1 else ""

    @cached_property
    def has_accounts(self) -> bool:
        """Whether rows need to name their account, which they don't if all share an account and a bank account."""
        rows = [row for group in self.groups for row in group.rows]
        return (
            not self.bank
            or any(row.account for row in rows)
            or len({row.repayment.product for row in rows}) > 1
        )

    @cached_property
    def has_borrowers(self) -> bool:
        return any(row.borrower for group in self.groups for row in group.rows)


def repayment_table(
    request: HttpRequest, rows: Iterable[RepaymentRow], *, covers: str, size: int = PAGE_SIZE
) -> RepaymentTable:
    """Build one page: upcoming repayments, soonest first, then month by month, newest first."""
    rows, today = list(rows), business_date()
    upcoming: list[RepaymentRow] = []
    past: list[RepaymentRow] = []
    for row in rows:
        (upcoming if row.is_upcoming(today) else past).append(row)
    upcoming.sort(key=_day)
    past.sort(key=_day, reverse=True)
    months = {title: list(group) for title, group in groupby(past, key=month_title)}
    page = Paginator([*upcoming, *past], size).get_page(request.GET.get("page"))
    groups = []
    for title, group in groupby(
        page, key=lambda row: UPCOMING if row.is_upcoming(today) else month_title(row)
    ):
        if title == UPCOMING:
            groups.append(MonthGroup(title, list(group), len(upcoming), None, is_mixed=True))
        else:
            paid = [row.repayment.amount for row in months[title] if is_collected(row.repayment)]
            succeeded = total(paid) if paid else Decimal(0)
            groups.append(MonthGroup(title, list(group), len(months[title]), succeeded))
    open_uuid = request.GET.get("payment")
    chosen = next((row for row in rows if open_uuid and row.repayment.uuid == open_uuid), None)
    record = Repayment.objects.filter(uuid=chosen.repayment.uuid).first() if chosen else None
    opened = OpenRepayment(chosen, record) if chosen and record else None
    summary = summarize(rows, today)
    return RepaymentTable(
        page,
        groups,
        covers,
        query_before(request.GET, "payment"),
        summary,
        opened,
        is_of_one_status=len(summary.counts) == 1,
    )


def rows_of_lists(lists: Iterable[LiveCopy], *, with_account: bool = False) -> list[RepaymentRow]:
    """The rows of some accounts' saved lists of repayments."""
    found = []
    for each in lists:
        account, why_null = each.record if with_account else None, each.why_null
        found += [RepaymentRow(one, account, why_null=why_null) for one in each.repayments]
    return found


def month_title(row: RepaymentRow) -> str:
    """The month of a repayment, in words."""
    day = row.repayment.effective_date
    return f"{day:%B} {day.year}" if day else "Without a date"


def summarize(rows: Sequence[RepaymentRow], today: date) -> Summary:
    """Summarize the rows by status, most frequent first, with the next upcoming one."""
    counts = []
    for status in sorted({row.status for row in rows}):
        amounts = [row.repayment.amount for row in rows if row.status == status]
        counts.append(StatusCount(status, len(amounts), total(amounts)))
    counts.sort(key=lambda count: -count.number)
    following = min((row for row in rows if row.is_upcoming(today)), key=_day, default=None)
    if following is None:
        return Summary(counts)
    return Summary(counts, following.repayment.effective_date, following.repayment.amount)


def _day(row: RepaymentRow) -> date:
    return row.repayment.effective_date or date.min
