"""The five figures of a loan. Each comes from the service's own schedule or says in words why there is none."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from portal.ui import wording
from servicing import Loan
from servicing.schedules import Installment, Schedule, State, total

NO_SCHEDULE = "The service lists no installments"
NOT_RECOGNISED = "Not every installment has a day and an amount"


@dataclass(frozen=True)
class Figure:
    """One figure: an amount or a day, and a sentence below it."""

    label: str
    words: str
    amount: Decimal | None = None
    day: date | None = None
    is_bad: bool = False


def figures(loan: Loan, schedule: Schedule, today: date) -> list[Figure]:
    """Next installment, overdue, paid, remaining, maturity."""
    return [
        *(_of_schedule(schedule, today) if schedule.is_known else _unknown(schedule)),
        _maturity(loan, schedule, today),
    ]


def _unknown(schedule: Schedule) -> list[Figure]:
    reason = NOT_RECOGNISED if schedule.rows else NO_SCHEDULE
    labels = ("Next installment", "Overdue installments", "Paid so far", "Remaining per schedule")
    return [Figure(label, reason) for label in labels]


def _of_schedule(schedule: Schedule, today: date) -> list[Figure]:
    return [
        _next(schedule, today),
        _overdue(schedule.overdue(today)),
        _paid(schedule.rows),
        _remaining([row for row in schedule.rows if not row.is_paid]),
    ]


def _next(schedule: Schedule, today: date) -> Figure:
    row = schedule.next_due(today)
    if row is None or row.due_date is None:
        return Figure("Next installment", "None is left to come")
    words = f"{wording.day(row.due_date, weekday=True)}, {wording.ago(row.due_date)}"
    return Figure("Next installment", words, row.total)


def _overdue(rows: Sequence[Installment]) -> Figure:
    if not rows:
        return Figure("Overdue installments", "None is overdue", Decimal(0))
    since = f"since {wording.day(min(row.due_date for row in rows if row.due_date))}"
    return Figure("Overdue installments", f"{counted(len(rows))}, {since}", _sum(rows), is_bad=True)


def _paid(rows: Sequence[Installment]) -> Figure:
    paid = [row for row in rows if row.is_paid]
    amount, whole = _sum(paid), _sum(rows)
    share = f", {amount / whole:.1%} of the total" if amount is not None and whole else ""
    return Figure("Paid so far", f"{len(paid)} of {counted(len(rows))}{share}", amount)


def _remaining(rows: Sequence[Installment]) -> Figure:
    return Figure("Remaining per schedule", counted(len(rows)), _sum(rows))


def _maturity(loan: Loan, schedule: Schedule, today: date) -> Figure:
    if loan.maturity_date:
        return Figure("Maturity", distance(loan.maturity_date, today), day=loan.maturity_date)
    if schedule.has_days and (last := schedule.rows[-1].due_date):
        return Figure("Last installment", f"{distance(last, today)}; no maturity is told", day=last)
    return Figure("Maturity", "Not provided by the service")


def distance(day: date, today: date) -> str:
    """How far a day is away, in whole months once they are many."""
    first, last = sorted((day, today))
    number = (last.year - first.year) * 12 + last.month - first.month - (last.day < first.day)
    months = number if day > today else -number
    if abs(months) < 3:
        return (wording.ago(day) or "").capitalize()
    if abs(months) >= 36:
        years = f"{abs(months) // 12} years"
        return f"In {years}" if months > 0 else f"{years} ago"
    return f"In {months} months" if months > 0 else f"{-months} months ago"


def counted(number: int) -> str:
    """``1 installment``, ``12 installments``."""
    return f"{number} installment{'' if number == 1 else 's'}"


def state_words(row: Installment, state: State, today: date) -> str:
    """Where an installment stands, in words."""
    if row.due_date is None or state in (State.PAID, State.UNKNOWN, State.FUTURE):
        return {State.PAID: "Paid", State.FUTURE: "Future"}.get(state, "Not told")
    days = abs((row.due_date - today).days)
    if state is State.OVERDUE:
        return f"Overdue {days} day{'' if days == 1 else 's'}"
    return f"Next, {wording.ago(row.due_date)}"


def _sum(rows: Sequence[Installment]) -> Decimal | None:
    return total(row.total for row in rows) if rows else Decimal(0)
