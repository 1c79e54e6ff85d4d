"""The payments behind a number of the page: exactly those that it adds up."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, Final

from django.http import Http404, QueryDict
from django.urls import reverse

from portal.portfolio import cash, forecast
from portal.portfolio.models import View
from portal.portfolio.sums import read_sum, total_of
from portal.records.figures import ACCOUNTS
from portal.records.models import Account, Borrower
from portal.records.query import NotUnderstood, calendar_day
from portal.records.rows import records_by_uuid, with_borrowers
from portal.ui.exports import amount

DUE, RETURNED, PROMISES = "due", "returned", "promises"
TITLES: Final[Mapping[str, str]] = {
    DUE: "Payments due",
    RETURNED: "Returned payments",
    PROMISES: "Promises",
    View.SCHEDULED: "Scheduled payments",
    View.UNSCHEDULED: "Due without a scheduled payment",
    View.PROMISED: "Promised payments",
}
DAYS: Final[Mapping[str, str]] = {
    RETURNED: "Reported",
    View.SCHEDULED: "Scheduled for",
    PROMISES: "Promised for",
}


@dataclass(frozen=True)
class PaymentRow:
    """A payment with its account of today."""

    uuid: str
    """Of the account."""
    record: Account | None
    borrower: Borrower | None
    day: date
    amount: Decimal | None
    came: Decimal | None
    repayment_uuid: str = ""

    @property
    def url(self) -> str:
        if self.repayment_uuid:
            return reverse("repayments:detail", args=[self.repayment_uuid])
        return self.record.get_absolute_url() if self.record else ""


@dataclass(frozen=True)
class PaymentList:
    """Payments of some days."""

    name: str
    first: date
    last: date
    payments: Any
    expected_on: date | None
    """The end of the day on which they were expected; None if they aren't expectations."""
    came: str = ""
    """The column of what came; empty if the list has none."""

    @property
    def title(self) -> str:
        return TITLES[self.name]

    @property
    def day_head(self) -> str:
        return DAYS.get(self.name, "Due on")

    @property
    def day(self) -> date:
        return self.expected_on or self.last

    @property
    def columns(self) -> dict[str, Callable[[PaymentRow], Any]]:
        """The columns of its file, which begin with those on the page."""
        found: dict[str, Callable[[PaymentRow], Any]] = {
            "Borrower": lambda row: str(row.borrower or ""),
            "Borrower ID": lambda row: row.record.borrower_uuid if row.record else "",
            "Type": lambda row: row.record.get_kind_display() if row.record else "",
            "Account": lambda row: row.uuid,
            "Repayment": lambda row: row.repayment_uuid,
            self.day_head: lambda row: row.day,
            "Amount": lambda row: amount(row.amount),
        }
        return found | ({"Of it came": lambda row: amount(row.came)} if self.came else {})

    def sums(self, number: int) -> dict[str, Any]:
        """The sums of so many payments, and how many of them have no amount."""
        found = total_of(self.payments, *filter(None, ["amount", self.came]))
        return {
            "unknown": number - found["amount_known"],
            "amount": read_sum(found, "amount"),
            "came": read_sum(found, self.came) if self.came else None,
        }

    def rows(self, payments: Iterable[Any]) -> Iterator[PaymentRow]:
        found = [_ROWS[self.name](one) for one in payments]
        records = records_by_uuid(ACCOUNTS, (one["uuid"] for one in found))
        borrowers = {one.pk: borrower for one, borrower in with_borrowers(records.values())}
        for one in found:
            record = records.get(one["uuid"])
            yield PaymentRow(record=record, borrower=borrowers.get(record.pk) if record else None, **one)


def _expected_row(one: Any) -> dict[str, Any]:
    repayment = one.subject if one.view == View.SCHEDULED else ""
    return {
        "uuid": one.uuid, "day": one.on, "amount": one.amount, "came": None, "repayment_uuid": repayment,
    }  # fmt: skip


_ROWS: Final[Mapping[str, Callable[[Any], dict[str, Any]]]] = {
    DUE: lambda one: {"uuid": one.uuid, "day": one.day, "amount": one.amount, "came": one.paid},
    RETURNED: lambda one: {
        "uuid": one.uuid, "day": one.day, "amount": one.amount, "came": None, "repayment_uuid": one.repayment_uuid,
    },
    PROMISES: lambda one: {"uuid": one.account_uuid, "day": one.day, "amount": one.amount, "came": one.came},
    **dict.fromkeys(View, _expected_row),
}  # fmt: skip


def find(state: QueryDict) -> PaymentList:
    """The payments that a query string asks for; any other isn't found."""
    name = state.get("list", "")
    try:
        first, last = (calendar_day(state.get(end, "")) for end in ("from", "to"))
        expected_on = calendar_day(state.get("day", "")) if name in View.values else None
    except NotUnderstood as reason:
        raise Http404(str(reason)) from None
    if expected_on:
        payments = forecast.expected_between(name, expected_on, first, last)
        return PaymentList(name, first, last, payments, expected_on)
    if name == DUE:
        return PaymentList(name, first, last, cash.dues_between(first, last), None, "paid")
    if name == RETURNED:
        return PaymentList(name, first, last, cash.returned_between(first, last), None)
    if name == PROMISES:
        return PaymentList(name, first, last, forecast.promises_between(first, last), None, "came")
    raise Http404("No such list.")
