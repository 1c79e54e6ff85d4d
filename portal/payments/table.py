"""Repayments as staff read them: one table on the pages of loan, line and borrower, and in the list across borrowers.

Hides what comes first, how months are grouped and summed, and what a status says in words. A sum with a missing part is
no sum, and an amount that the service did not split is never shown as zeros.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import groupby
from typing import Any, NamedTuple

from django.core.paginator import Page, Paginator
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from portal.payments.life import Step, Telling, life
from portal.readings import Reading
from portal.registry import memory
from portal.registry.models import Kind, Record
from portal.ui import wording
from servicing import Repayment, codec, sense
from servicing.schedules import total
from servicing.values import exact

PAGE = 25
SCHEDULED, SUCCEEDED = "SCHEDULED", "SUCCEEDED"
PARTS = ("principal", "interest", "fees", "suspense")
WIDTH = 100
# Gives what messages tell of the repayment with an identifier.
Tellings = Callable[[str], Sequence[Telling]]


class Part(NamedTuple):
    """One part of a payment, and where it stands in its bar."""

    name: str
    amount: Decimal
    start: Decimal
    width: Decimal


@dataclass(frozen=True)
class Row:
    """One repayment with what it is for; the account and the borrower where the table does not go without saying."""

    repayment: Repayment
    account: Record | None = None
    borrower: Record | None = None
    why_null: str = ""
    """Why a value of it is missing."""

    @property
    def url(self) -> str:
        return reverse("repayments:detail", args=[self.repayment.uuid])

    @property
    def status(self) -> str:
        return (self.repayment.status or "").upper()

    @property
    def words(self) -> str:
        """The status in words."""
        return wording.status(self.status).word if self.status else "No status was told"

    @property
    def reason(self) -> str:
        """Why it failed, in the service's words; that it gives none is said."""
        words = (self.repayment.error_description or "").strip()
        has_failed = wording.status(self.status).state == "bad" if self.status else False
        return words or ("no reason given" if has_failed else "")

    @property
    def parts(self) -> list[Part]:
        """The bar of a payment that the service split; empty where it did not."""
        told = {name: exact(getattr(self.repayment, name)) for name in PARTS}
        if told["principal"] is None or told["interest"] is None:
            return []
        amounts = {name: amount for name, amount in told.items() if amount is not None}
        whole = sum(amounts.values(), Decimal(0))
        return _bar(amounts, whole) if whole > 0 and min(amounts.values()) >= 0 else []

    @property
    def findings(self) -> list[sense.Rule]:
        """What does not add up."""
        return sense.of_repayment(self.repayment)

    def is_upcoming(self, today: date) -> bool:
        """Whether it is still to come."""
        day = self.repayment.effective_date
        return self.status == SCHEDULED and day is not None and day >= today


class Count(NamedTuple):
    """How many repayments have a status, and what they come to; None where an amount is missing."""

    status: str
    number: int
    amount: Decimal | None

    @property
    def words(self) -> str:
        return f"{self.number:,}"


@dataclass(frozen=True)
class Summary:
    """What the repayments of a table come to, by status, and the next that is to come."""

    counts: Sequence[Count]
    next_day: date | None = None
    next_amount: Decimal | None = None
    too_many: str = ""
    """How many there are in words, where they are too many to be added up."""

    @property
    def number(self) -> int:
        """How many there are."""
        return sum(count.number for count in self.counts)

    @property
    def words(self) -> str:
        """How many there are, in words."""
        return f"{self.too_many or format(self.number, ',')} repayment{'' if self.number == 1 else 's'}"


@dataclass(frozen=True)
class Group:
    """The rows of a month on one page, with what the whole month comes to."""

    title: str
    rows: Sequence[Row]
    number: int | None
    """Of the whole month; None where it was not counted."""
    succeeded: Decimal | None
    is_mixed: bool = False
    """Whether it is no month: what is to come, or a list in another order; it has no subtotal."""


@dataclass(frozen=True)
class Opened:
    """The repayment that is read beside its list, or on a page of its own."""

    row: Row
    record: Record
    tellings: Sequence[Telling] = ()
    """What messages tell of it."""

    @property
    def life(self) -> list[Step]:
        """Its days and states in order."""
        return life(self.record, self.tellings)

    @property
    def raw(self) -> Any:
        """It as it was received."""
        return codec.parse(self.record.answer) if self.record.answer else {}


@dataclass(frozen=True)
class Table:
    """One page of repayments, as ``ui/_repayments.html`` draws it."""

    page: Page[Any]
    groups: Sequence[Group]
    summary: Summary
    covers: str
    """What the summary is about, such as "of this loan"."""
    opened: Opened | None = None


def opened(rows: Iterable[Row], uuid: str, messages_of: Tellings) -> Opened | None:
    """The one of these rows that is asked for, where this desk knows it by itself."""
    row = next((row for row in rows if uuid and row.repayment.uuid == uuid), None)
    record = memory.find(Kind.REPAYMENT, uuid) if row else None
    return Opened(row, record, messages_of(uuid)) if row and record else None


def table_of(request: HttpRequest, listed: Reading, *, covers: str, messages_of: Tellings) -> Table:
    """The repayments of one account, on the page of that account."""
    return table(
        [Row(one, why_null=listed.record.why_null) for one in listed.repayments],
        covers=covers,
        number=request.GET.get("page"),
        beside=request.GET.get("payment"),
        messages_of=messages_of,
        today=timezone.localdate(),
    )


def table(
    rows: Iterable[Row],
    *,
    covers: str,
    number: str | None,
    today: date,
    messages_of: Tellings,
    beside: str | None = None,
) -> Table:
    """What is to come first, the soonest on top; then month by month, the newest on top.

    ``beside`` is the identifier of the repayment that stands open beside them; ``messages_of`` gives what messages
    tell of it.
    """
    rows = list(rows)
    ahead = [row for row in rows if row.is_upcoming(today)]
    past = [row for row in rows if not row.is_upcoming(today)]
    ahead.sort(key=lambda row: row.repayment.effective_date or today)
    past.sort(key=lambda row: row.repayment.effective_date or date.min, reverse=True)
    page = Paginator([*ahead, *past], PAGE).get_page(number)
    months = {title: group_of(title, list(group)) for title, group in groupby(past, key=month_of)}
    shown = []
    for title, group in groupby(page, key=lambda row: "" if row.is_upcoming(today) else month_of(row)):
        whole = months[title] if title else group_of("Upcoming", ahead, is_mixed=True)
        shown.append(Group(whole.title, list(group), whole.number, whole.succeeded, whole.is_mixed))
    return Table(page, shown, summarised(rows, today), covers, opened(rows, beside or "", messages_of))


def month_of(row: Row) -> str:
    """The month a repayment counts in, in words."""
    day = row.repayment.effective_date
    return f"{day:%B} {day.year}" if day else "Without a date"


def group_of(title: str, rows: Sequence[Row], *, is_mixed: bool = False) -> Group:
    """Rows under one title; what succeeded among them is their subtotal."""
    amounts = [row.repayment.amount for row in rows if row.status == SUCCEEDED]
    return Group(title, rows, len(rows), total(amounts) if amounts else Decimal(0), is_mixed)


def summarised(rows: Sequence[Row], today: date) -> Summary:
    """What these rows come to, statuses in the order of their number."""
    statuses = sorted({row.status for row in rows})
    counts = [
        Count(status, len(amounts), total(amounts))
        for status in statuses
        if (amounts := [row.repayment.amount for row in rows if row.status == status])
    ]
    ahead = [row.repayment for row in rows if row.is_upcoming(today)]
    following = min(ahead, key=lambda one: one.effective_date or today, default=None)
    return Summary(
        sorted(counts, key=lambda count: -count.number),
        following.effective_date if following else None,
        following.amount if following else None,
    )


FIELDS = {
    "Product": "product",
    "Effective": "effective_date",
    "Amount": "amount",
    "Status": "status",
    "Type": "payment_type",
    **{name.capitalize(): name for name in PARTS},
    "Ending balance": "ending_balance",
    "Error": "error_description",
    "Bank account": "borrower_bank_account_uuid",
    "ACH batch": "ach_batch_id",
    "ACH id": "ach_id",
}
COLUMNS = ["Repayment", "Borrower", "Account", *FIELDS]


def cells(row: Row) -> list[Any]:
    """A repayment as a line of a file, under :data:`COLUMNS`."""
    owner = row.borrower and str(row.borrower)
    account = row.account and row.account.uuid
    return [row.repayment.uuid, owner, account, *(getattr(row.repayment, name) for name in FIELDS.values())]


def account_of(listed: Record) -> Record:
    """The loan or line behind a list of repayments, as far as a link needs it."""
    kinds = {Kind.LOAN_REPAYMENTS: Kind.LOAN, Kind.LINE_REPAYMENTS: Kind.LINE}
    return Record(kind=kinds[Kind(listed.kind)], uuid=listed.uuid, borrower_uuid=listed.borrower_uuid)


def _bar(amounts: dict[str, Decimal], whole: Decimal) -> list[Part]:
    parts: list[Part] = []
    start = Decimal(0)
    for name, amount in amounts.items():
        width = round(amount * WIDTH / whole, 2)
        parts.append(Part(name, amount, start, width))
        start += width
    return parts
