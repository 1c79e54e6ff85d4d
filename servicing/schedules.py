"""A loan's installments as a schedule, in either of the shapes that are known; the interface shows none (section 2.7).

Hides how an installment's shape is recognised. What is not recognised keeps its own keys, and no figure is invented:
a sum with a missing part is no sum, and a day that is not told makes no row late.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from enum import StrEnum
from itertools import groupby
from typing import Any, Final, Literal, NamedTuple

from servicing.loans import Loan
from servicing.values import calendar_day, exact

Form = Literal["number", "day", "money", "status", "text"]

FIELDS: Final[dict[str, Form]] = {
    "number": "number",
    "due_date": "day",
    "principal": "money",
    "interest": "money",
    "fees": "money",
    "total": "money",
    "balance": "money",
    "status": "status",
    "paid_on": "day",
    "loan_amount": "money",
}
_PASCAL: Final = {
    "PaymentNumber": "number",
    "PaymentDate": "due_date",
    "PrincipalAmount": "principal",
    "InterestAmount": "interest",
    "OtherAmount": "fees",
    "PaymentAmount": "total",
    "BalanceAmount": "balance",
    "LoanAmount": "loan_amount",
}
_HISTORY: Final = "IsHistory"
_PAID: Final = frozenset({"PAID", "SUCCEEDED", "COMPLETED", "SETTLED"})
_READ: Final = {"number": exact, "money": exact, "day": calendar_day}


class State(StrEnum):
    """Where an installment stands on a day."""

    PAID = "paid"
    OVERDUE = "overdue"
    NEXT = "next"
    FUTURE = "future"
    UNKNOWN = "unknown"


class Column(NamedTuple):
    """One column of a schedule: a field of `Installment`, or a key of its `extra` as the service words it."""

    name: str
    form: Form
    is_known: bool


class Installment(NamedTuple):
    """One row of a schedule. Amounts are exact; what the row does not tell is None."""

    number: Decimal | None = None
    due_date: date | None = None
    principal: Decimal | None = None
    interest: Decimal | None = None
    fees: Decimal | None = None
    total: Decimal | None = None
    balance: Decimal | None = None
    status: str | None = None
    paid_on: date | None = None
    loan_amount: Decimal | None = None
    is_paid: bool = False
    extra: Mapping[str, Any] = {}
    """What belongs to no known shape, or could not be read as its shape says, as it came."""

    def value(self, column: Column) -> Any:
        """What the row tells in a column."""
        return getattr(self, column.name) if column.is_known else self.extra.get(column.name)


class Schedule(NamedTuple):
    """The rows in the service's order. `is_known` says whether dates and amounts were recognised."""

    rows: tuple[Installment, ...]
    is_known: bool

    @property
    def columns(self) -> list[Column]:
        """What any row tells: the known fields in their order, then the keys of its own as they first appear."""
        told = [name for name in FIELDS if any(getattr(row, name) is not None for row in self.rows)]
        own = dict.fromkeys(key for row in self.rows for key in row.extra)
        return [
            *(Column(name, FIELDS[name], True) for name in told),
            *(Column(key, _form([row.extra.get(key) for row in self.rows]), False) for key in own),
        ]

    @property
    def has_days(self) -> bool:
        """Whether every row tells its day, each not before the one above it."""
        days = [row.due_date for row in self.rows]
        told = [day for day in days if day]
        return bool(days) and len(told) == len(days) and told == sorted(told)

    @property
    def first_unpaid(self) -> date | None:
        """The first day for which something is not paid, whether it has passed or not."""
        return min((row.due_date for row in self.rows if row.due_date and not row.is_paid), default=None)

    def next_due(self, today: date) -> Installment | None:
        """The first row that is neither paid nor before `today`."""
        return next((r for r in self.rows if not r.is_paid and r.due_date and r.due_date >= today), None)

    def overdue(self, today: date) -> list[Installment]:
        """Rows whose day has passed without being paid."""
        return [row for row in self.rows if not row.is_paid and row.due_date and row.due_date < today]

    def states(self, today: date) -> list[State]:
        """Where each row stands."""
        following = self.next_due(today)
        return [_state(row, today, following) for row in self.rows]

    def years(self) -> list[tuple[int, list[Installment]]]:
        """The rows of each year; none where their days are not told in order."""
        if not self.has_days:
            return []
        by_year = groupby(self.rows, key=lambda row: row.due_date.year if row.due_date else 0)
        return [(year, list(rows)) for year, rows in by_year]


def schedule_of(loan: Loan) -> Schedule:
    """The loan's installments; none where the service lists none."""
    rows = tuple(map(_row, loan.installments))
    return Schedule(rows, is_known=bool(rows) and all(row.due_date and row.total is not None for row in rows))


def total(values: Iterable[Decimal | None]) -> Decimal | None:
    """The exact sum; None when any part is missing, for then there is no true sum."""
    parts = list(values)
    present = [part for part in parts if part is not None]
    return sum(present, Decimal(0)) if present and len(present) == len(parts) else None


def _row(item: Any) -> Installment:
    if not isinstance(item, Mapping):
        return Installment(extra={"entry": item})
    fields, extra = _read(item)
    status = item.get("status")
    is_paid = bool(fields.get("paid_on")) or str(status).upper() in _PAID or item.get(_HISTORY) is True
    return Installment(**fields, is_paid=is_paid, extra=extra)


def _read(item: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The fields that are recognised and readable, and everything else."""
    fields: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for key, value in item.items():
        name = _PASCAL.get(key, key)
        form = FIELDS.get(name)
        read = _text(value) if form in ("status", None) else _READ[form](value)
        if form and name not in fields and (read is not None or value in (None, "")):
            fields[name] = read
        elif key != _HISTORY or not isinstance(value, bool):
            extra[key] = value
    return fields, extra


def _state(row: Installment, today: date, following: Installment | None) -> State:
    if row.is_paid:
        return State.PAID
    if row.due_date is None:
        return State.UNKNOWN
    if row.due_date < today:
        return State.OVERDUE
    return State.NEXT if row is following else State.FUTURE


def _form(values: Sequence[Any]) -> Form:
    """What the values of an unknown key look like; that a number is money nobody said."""
    told = [value for value in values if value is not None]
    if told and all(not isinstance(value, str) and exact(value) is not None for value in told):
        return "number"
    if told and all(isinstance(value, str) and calendar_day(value) for value in told):
        return "day"
    return "text"


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
