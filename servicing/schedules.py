"""A loan's installments as a schedule, in either of the shapes that are known; the interface shows none (section 2.7).

Hides how an installment's shape is recognised. What is not recognised keeps its own keys, and no figure is invented.
"""

from collections.abc import Iterable, Mapping
from datetime import date
from decimal import Decimal
from typing import Any, Final, NamedTuple

from servicing.loans import Loan
from servicing.values import calendar_day, exact

FIELDS: Final = (
    "number",
    "due_date",
    "principal",
    "interest",
    "fees",
    "total",
    "balance",
    "status",
    "paid_on",
)
_PASCAL: Final = {
    "PaymentNumber": "number",
    "PaymentDate": "due_date",
    "PrincipalAmount": "principal",
    "InterestAmount": "interest",
    "OtherAmount": "fees",
    "PaymentAmount": "total",
    "BalanceAmount": "balance",
}
_PAID: Final = frozenset({"PAID", "SUCCEEDED", "COMPLETED", "SETTLED"})


class Installment(NamedTuple):
    """One row of a schedule. Amounts are exact; what the row does not tell is None."""

    number: int | None = None
    due_date: date | None = None
    principal: Decimal | None = None
    interest: Decimal | None = None
    fees: Decimal | None = None
    total: Decimal | None = None
    balance: Decimal | None = None
    status: str | None = None
    paid_on: date | None = None
    is_paid: bool = False
    extra: Mapping[str, Any] = {}
    """Keys of the row that belong to no known shape, as they came."""


class Schedule(NamedTuple):
    """The rows in the service's order. `is_known` says whether dates and amounts were recognised."""

    rows: tuple[Installment, ...]
    is_known: bool

    def next_due(self, today: date) -> Installment | None:
        """The first row that is neither paid nor before `today`."""
        return next((r for r in self.rows if not r.is_paid and r.due_date and r.due_date >= today), None)

    def overdue(self, today: date) -> list[Installment]:
        """Rows whose day has passed without being paid."""
        return [row for row in self.rows if not row.is_paid and row.due_date and row.due_date < today]


def schedule_of(loan: Loan) -> Schedule:
    """The loan's installments; none where the service lists none."""
    rows = tuple(_row(item) for item in loan.installments if isinstance(item, Mapping))
    return Schedule(rows, is_known=bool(rows) and all(row.due_date and row.total is not None for row in rows))


def total(values: Iterable[Decimal | None]) -> Decimal | None:
    """The exact sum; None when any part is missing, for then there is no true sum."""
    parts = list(values)
    present = [part for part in parts if part is not None]
    return sum(present, Decimal(0)) if present and len(present) == len(parts) else None


def _row(item: Mapping[str, Any]) -> Installment:
    named = {_PASCAL.get(key, key): value for key, value in item.items()}
    paid_on = calendar_day(named.get("paid_on"))
    status = named.get("status")
    return Installment(
        number=named["number"] if isinstance(named.get("number"), int) else None,
        due_date=calendar_day(named.get("due_date")),
        principal=exact(named.get("principal")),
        interest=exact(named.get("interest")),
        fees=exact(named.get("fees")),
        total=exact(named.get("total")),
        balance=exact(named.get("balance")),
        status=status if isinstance(status, str) else None,
        paid_on=paid_on,
        is_paid=bool(paid_on) or str(status).upper() in _PAID or item.get("IsHistory") is True,
        extra={key: value for key, value in item.items() if _PASCAL.get(key, key) not in FIELDS},
    )
