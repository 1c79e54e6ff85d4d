"""A loan's installments as a schedule (section 2.7).

Hides how the two known shapes of an installment are recognized; the interface does not describe any. Unknown fields
keep their keys, and no figure is invented: a sum with a missing part is None, and a row without a date is never late.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from enum import StrEnum
from itertools import groupby
from typing import Any, Final, Literal, NamedTuple

from servicing.loans import Loan
from servicing.values import calendar_day, decimal_or_none
from servicing.words import normal_word

HALF_CENT: Final = Decimal("0.005")
"""Less than this is nothing that anybody can pay."""

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
_UNPAID: Final = frozenset(
    {
        "SCHEDULED",
        "PENDING",
        "UPCOMING",
        "FUTURE",
        "OPEN",
        "DUE",
        "UNPAID",
        "PAST_DUE",
        "OVERDUE",
        "LATE",
        "DELINQUENT",
    }
)
_READERS: Final = {"number": decimal_or_none, "money": decimal_or_none, "day": calendar_day}


class State(StrEnum):
    """The state of an installment on a day."""

    PAID = "paid"
    OVERDUE = "overdue"
    DUE_SINCE = "due since"
    """It fell due since the copy, so the service hasn't said whether it was paid."""
    NEXT = "next"
    FUTURE = "future"
    UNKNOWN = "unknown"


class Column(NamedTuple):
    """One column of a schedule: a field of `Installment`, or a key of its `extra`."""

    name: str
    form: Form
    is_known: bool


class Installment(NamedTuple):
    """One row of a schedule. Amounts are exact; missing values are None."""

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
    has_known_marker: bool = False
    """Whether the service says recognizably that the row is paid or unpaid."""
    extra: Mapping[str, Any] = {}
    """The values, as received, that belong to no known field or could not be read as its type."""

    @property
    def is_owed(self) -> bool:
        """Whether the row is unpaid and at least half a cent."""
        return not self.is_paid and (self.total is None or self.total >= HALF_CENT)

    def value(self, column: Column) -> Any:
        """The value of the row in a column."""
        return getattr(self, column.name) if column.is_known else self.extra.get(column.name)


class Schedule(NamedTuple):
    """Installments in the service's order. `is_known` says whether every row has a date and a total."""

    rows: tuple[Installment, ...]
    is_known: bool

    @property
    def columns(self) -> list[Column]:
        """The columns with a value in any row: known fields in their order, then other keys as they appear."""
        present = [name for name in FIELDS if any(getattr(row, name) is not None for row in self.rows)]
        own = dict.fromkeys(key for row in self.rows for key in row.extra)
        return [
            *(Column(name, FIELDS[name], True) for name in present),
            *(Column(key, _guess_form([row.extra.get(key) for row in self.rows]), False) for key in own),
        ]

    @property
    def has_days(self) -> bool:
        """Whether every row has a due date, in ascending order."""
        days = [row.due_date for row in self.rows]
        present = [day for day in days if day]
        return bool(days) and len(present) == len(days) and present == sorted(present)

    def next_due(self, today: date) -> Installment | None:
        """The unpaid row that is due first, today or later."""
        coming = [row for row in self.rows if row.is_owed and row.due_date and row.due_date >= today]
        return min(coming, key=lambda row: row.due_date or today, default=None)

    def overdue(self, today: date) -> list[Installment]:
        """The unpaid rows due before today."""
        return [row for row in self.rows if row.is_owed and row.due_date and row.due_date < today]

    def due_since(self, copied_on: date, today: date) -> list[Installment]:
        """The unpaid rows due from the day of the copy up to yesterday."""
        return [
            row for row in self.rows if row.is_owed and row.due_date and copied_on <= row.due_date < today
        ]

    def states(self, today: date, copied_on: date | None = None) -> list[State]:
        """The state of each row on a day; ``copied_on`` is the day of the copy, today if not given."""
        following = self.next_due(today)
        copied_on = min(copied_on or today, today)
        return [_state(row, today, copied_on, following) for row in self.rows]

    def years(self) -> list[tuple[int, list[Installment]]]:
        """The rows of each year; empty unless every row has a due date, in order."""
        if not self.has_days:
            return []
        by_year = groupby(self.rows, key=lambda row: row.due_date.year if row.due_date else 0)
        return [(year, list(rows)) for year, rows in by_year]


def schedule_of(loan: Loan, today: date) -> Schedule:
    """The schedule of a loan as of a day; without rows if the service lists no installments.

    A row without a status whose payment date is after that day isn't paid yet. The loan caches its latest schedule.
    """
    cached: tuple[date, Schedule] | None = loan.__dict__.get("_schedule")
    if cached is None or cached[0] != today:
        rows = tuple(_read_row(item, today) for item in loan.installments)
        is_known = bool(rows) and all(row.due_date and row.total is not None for row in rows)
        loan.__dict__["_schedule"] = cached = today, Schedule(rows, is_known)
    return cached[1]


def total(values: Iterable[Decimal | None]) -> Decimal | None:
    """The exact sum; None if any value is missing, or if there are none."""
    parts = list(values)
    present = [part for part in parts if part is not None]
    return sum(present, Decimal(0)) if present and len(present) == len(parts) else None


def _read_row(item: Any, today: date) -> Installment:
    if not isinstance(item, Mapping):
        return Installment(extra={"entry": item})
    fields, extra = _split_fields(item)
    paid_on, status = fields.get("paid_on"), item.get("status")
    word, is_history = normal_word(str(status)), item.get(_HISTORY)
    is_paid = word in _PAID or is_history is True or (paid_on is not None and paid_on <= today)
    is_readable = paid_on is not None or item.get("paid_on") in (None, "")  # Any other text may mean paid.
    has_other_marker = paid_on is not None or isinstance(is_history, bool) or "paid_on" in item
    has_marker = word in _PAID | _UNPAID or (status in (None, "") and has_other_marker)
    has_known_marker = is_paid or (is_readable and has_marker)
    return Installment(**fields, is_paid=is_paid, has_known_marker=has_known_marker, extra=extra)


def _split_fields(item: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split an installment into known, readable fields and everything else."""
    fields: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for key, value in item.items():
        name = _PASCAL.get(key, key)
        form = FIELDS.get(name)
        read = _text(value) if form in ("status", None) else _READERS[form](value)
        if form and name not in fields and (read is not None or value in (None, "")):
            fields[name] = read
        elif key != _HISTORY or not isinstance(value, bool):
            extra[key] = value
    return fields, extra


def _state(row: Installment, today: date, copied_on: date, following: Installment | None) -> State:
    if row.is_paid:
        return State.PAID
    if row.due_date is None:
        return State.UNKNOWN
    if row.due_date < today:
        if not row.is_owed or not row.has_known_marker:
            return State.UNKNOWN
        return State.OVERDUE if row.due_date < copied_on else State.DUE_SINCE
    return State.NEXT if row is following else State.FUTURE


def _guess_form(values: Sequence[Any]) -> Form:
    """The type that fits all values of an unknown key. A number may not be money, so it stays a number."""
    present = [value for value in values if value is not None]
    if present and all(
        not isinstance(value, str) and decimal_or_none(value) is not None for value in present
    ):
        return "number"
    if present and all(isinstance(value, str) and calendar_day(value) for value in present):
        return "day"
    return "text"


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
