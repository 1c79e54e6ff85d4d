"""What is owed on loans and lines of credit: one definition of each figure, from a saved answer and the business date.

Every list, page, export, printed document and count reads these figures. An amount is None if it is not known, which
is never the same as zero. Loan figures are calculated from the schedule; line figures are the service's own, except
the share of the limit.

A saved answer says what was unpaid on its own business date, the day of the copy. What fell due since then may have
been paid: it is due since the copy, and never past due before a newer answer says so.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Final, NamedTuple

from servicing.business_days import first_business_day
from servicing.credit_lines import Statement
from servicing.loans import Loan
from servicing.repayments import Repayment, has_succeeded
from servicing.schedules import HALF_CENT, Installment, Schedule, schedule_of, total
from servicing.words import normal_word

NOTHING: Final = Decimal(0)
FOREVER: Final = date.max
"""The ``good_through`` of figures that no passing day changes."""
ONE_DAY: Final = timedelta(days=1)
NEW_LOAN_DAYS: Final = 30
"""How long after its opening a loan may have no installments yet."""


class Due(NamedTuple):
    """A payment that is due today or later."""

    day: date
    amount: Decimal | None


class DueSince(NamedTuple):
    """What fell due since the copy of an account, from the day of the copy up to yesterday."""

    number: int
    """How many payments."""
    amount: Decimal | None
    """Their sum in dollars; None if one of them has no amount or an unrecognized status."""
    day: date
    """The oldest due date."""


class Aging(StrEnum):
    """How long an account has been past due."""

    CURRENT = "Current"
    DAYS_1_29 = "1–29 days"
    DAYS_30_59 = "30–59 days"
    DAYS_60_89 = "60–89 days"
    DAYS_90 = "90+ days"
    UNKNOWN = "Not known"


AGING_DAYS: Final = {
    Aging.CURRENT: (0, 0),
    Aging.DAYS_1_29: (1, 29),
    Aging.DAYS_30_59: (30, 59),
    Aging.DAYS_60_89: (60, 89),
    Aging.DAYS_90: (90, None),
}
"""The first and the last day past due of each bucket."""


class NotKnown(StrEnum):
    """Why the past due amount of an account is not known."""

    NOT_READ = "The account hasn’t been loaded"
    NO_DATE = "An unpaid installment has no due date"
    NO_TOTAL = "A past due installment has no amount"
    UNKNOWN_STATUS = "A past due installment has a status we don't recognize"
    DELINQUENT = "The service calls it delinquent, but no installment is past due"
    NO_SCHEDULE = "The service lists no installments"
    NO_SCHEDULE_YET = "No schedule yet"
    NOT_REPORTED = "The service doesn't report it"


@dataclass(frozen=True, kw_only=True)
class Figures:
    """The figures of one account on one business date."""

    past_due: Decimal | None = None
    why_not_known: NotKnown | None = None
    """Why ``past_due`` is None."""
    is_late: bool = False
    """Whether it is past due: by an amount above zero, or by an unknown amount if delinquent or with days past due."""
    oldest_unpaid_due: date | None = None
    """Of a loan: the earliest due date that is past due. Days past due are counted from it."""
    reported_days: int | None = None
    """Of a line: the service's own days past due, as of the copy."""
    due_since: DueSince | None = None
    """Never part of ``past_due``, of the days past due or of ``is_late``."""
    due_next: Due | None = None
    remaining: Decimal | None = None
    """Of a loan: all unpaid installments, interest included."""
    principal: Decimal | None = None
    payoff: Decimal | None = None
    """Of a line; the service provides none for a loan."""
    available: Decimal | None = None
    limit: Decimal | None = None
    is_closed: bool = False
    good_through: date = FOREVER
    """The last business date on which these figures hold."""

    def days_past_due(self, today: date) -> int | None:
        """The days past due; None if they are not known."""
        return days_past_due(self.past_due, self.oldest_unpaid_due, self.reported_days, today)

    def aging(self, today: date) -> Aging:
        """The aging bucket."""
        return aging(self.past_due, self.days_past_due(today))


def loan_figures(
    loan: Loan, today: date, *, copied_on: date | None = None, closed: Collection[str] = ()
) -> Figures:
    """The figures of a loan on a business date.

    ``copied_on`` is the business date of the answer, today if not given; ``closed`` are the statuses of closed
    accounts.
    """
    copied_on = min(copied_on or today, today)
    schedule = schedule_of(loan, today)
    overdue, following = schedule.overdue(copied_on), schedule.next_due(today)
    past_due, why = _loan_past_due(loan, schedule, copied_on, today)
    has_days = why in (None, NotKnown.NO_TOTAL)
    oldest = min((row.due_date for row in overdue if row.due_date), default=None) if has_days else None
    is_closed = is_closed_status(loan.status, closed)
    is_late = bool(loan.delinquent or oldest) if past_due is None else past_due > 0
    return Figures(
        past_due=past_due,
        why_not_known=why,
        is_late=is_late and not is_closed,
        oldest_unpaid_due=oldest,
        due_since=None if is_closed else _loan_due_since(schedule, copied_on, today),
        due_next=Due(following.due_date, following.total) if following and following.due_date else None,
        remaining=_remaining(schedule, today),
        principal=_loan_principal(loan, schedule, today),
        is_closed=is_closed,
        good_through=_loan_good_through(loan, schedule, today),
    )


def line_figures(line: Statement, today: date, *, copied_on: date | None = None) -> Figures:
    """The figures of a line of credit on a business date.

    ``copied_on`` is the business date of the answer, today if not given.
    """
    copied_on = min(copied_on or today, today)
    past_due, days = _at_least_a_cent(line.past_due_balance), line.days_past_due
    day, amount = line.payment_due_date, line.payment_amount_due
    has_payment = day is not None and day >= copied_on and amount is not None and amount >= HALF_CENT
    is_due, has_passed = (day >= today, day < today) if has_payment and day else (False, False)
    return Figures(
        past_due=past_due,
        why_not_known=NotKnown.NOT_REPORTED if past_due is None else None,
        is_late=(days or 0) > 0 if past_due is None else past_due > 0,
        reported_days=days,
        due_since=DueSince(1, amount, day) if has_passed and day else None,
        due_next=Due(day, amount) if is_due and day else None,
        principal=line.principal_balance,
        payoff=line.payoff_balance,
        available=line.available_credit,
        limit=line.credit_limit,
        good_through=day if is_due and day else FOREVER,
    )


def account_figures(
    answer: Loan | Statement | None,
    today: date,
    *,
    copied_on: date | None = None,
    closed: Collection[str] = (),
) -> Figures:
    """The figures of a loan or a line; all unknown for one that was never read."""
    match answer:
        case Loan():
            return loan_figures(answer, today, copied_on=copied_on, closed=closed)
        case Statement():
            return line_figures(answer, today, copied_on=copied_on)
    return Figures(why_not_known=NotKnown.NOT_READ)


def is_closed_status(status: str | None, closed: Collection[str]) -> bool:
    """Whether a status means closed, in any spelling."""
    return bool(status) and normal_word(status) in map(normal_word, closed)


def days_past_due(
    past_due: Decimal | None, oldest_unpaid_due: date | None, reported_days: int | None, today: date
) -> int | None:
    """A line's days as reported, or the days since a loan's oldest unpaid due date; None if unknown."""
    if reported_days is not None:
        return reported_days
    if oldest_unpaid_due is not None:
        return (today - oldest_unpaid_due).days
    return 0 if past_due is not None and past_due <= 0 else None


def aging(past_due: Decimal | None, days: int | None) -> Aging:
    """The aging bucket of an account; unknown if the amount and the days contradict each other."""
    if days is None or days < 0 or (past_due is not None and (past_due > 0) != (days > 0)):
        return Aging.UNKNOWN
    return next(
        bucket
        for bucket, (first, last) in AGING_DAYS.items()
        if first <= days and (last is None or days <= last)
    )


def percent_of_limit(principal: Decimal | None, limit: Decimal | None) -> Decimal | None:
    """The principal as a percentage of the limit, above 100 where it exceeds it; None without a limit above zero."""
    return None if principal is None or limit is None or limit <= 0 else principal / limit * 100


def is_partly_paid(
    oldest_unpaid_due: date | None, schedule: Schedule, repayments: Iterable[Repayment]
) -> bool:
    """Whether a repayment succeeded after the oldest unpaid due date that no paid installment accounts for.

    It may have paid a part of what is past due, which no field shows. A paid installment accounts for one repayment of
    its day and amount.
    """
    if oldest_unpaid_due is None:
        return False
    accounted = [(_payment_days(row), row.total) for row in schedule.rows if row.is_paid]
    for one in repayments:
        day = one.effective_date
        if not has_succeeded(one) or day is None or day <= oldest_unpaid_due:
            continue
        own = next((entry for entry in accounted if day in entry[0] and entry[1] == one.amount), None)
        if own is None:
            return True
        accounted.remove(own)
    return False


def _payment_days(row: Installment) -> set[date]:
    """The days on which an installment may have been paid: as reported, else its due date or the next business day."""
    if row.paid_on:
        return {row.paid_on}
    return {row.due_date, first_business_day(row.due_date)} if row.due_date else set()


# What a borrower owes


class Part(NamedTuple):
    """One loan or line in a borrower's total."""

    is_line: bool
    past_due: Decimal | None
    days: int | None
    is_late: bool
    is_closed: bool
    due_since: DueSince | None = None
    has_no_schedule_yet: bool = False
    """Whether its amount isn't expected yet, so that nothing is missing without it."""


@dataclass(frozen=True)
class PastDue:
    """What is past due over several accounts, and which parts are not known or left out."""

    known: Decimal = NOTHING
    loans: int = 0
    lines: int = 0
    unknown_loans: int = 0
    unknown_lines: int = 0
    closed: int = 0
    """Closed accounts, which are left out."""
    days: int | None = None
    """The largest known number of days past due."""
    is_late: bool = False
    due_since: Sequence[DueSince] = ()
    """What fell due since the copy of each account, which no amount here includes."""

    @property
    def unknown(self) -> int:
        """The number of open accounts whose past due amount is not known."""
        return self.unknown_loans + self.unknown_lines

    @property
    def amount(self) -> Decimal | None:
        """The sum of the known amounts; None without open accounts, or if some are unknown and the rest are zero."""
        return self.known if self.known or (self.loans + self.lines > self.unknown == 0) else None


def add_past_due(parts: Iterable[Part]) -> PastDue:
    """The past due total of open loans and lines. Credits (amounts below zero) are not debt and don't count."""
    known, days, is_late, closed = NOTHING, None, False, 0
    due_since: list[DueSince] = []
    accounts, unknown = [0, 0], [0, 0]  # Loans, lines.
    for part in parts:
        if part.is_closed:
            closed += 1
            continue
        if part.due_since:
            due_since.append(part.due_since)
        if part.has_no_schedule_yet:
            continue
        accounts[part.is_line] += 1
        if part.past_due is None:
            unknown[part.is_line] += 1
        elif part.past_due > 0:
            known += part.past_due
        if part.is_late:
            is_late = True
            if part.days is not None:
                days = part.days if days is None else max(days, part.days)
    return PastDue(known, accounts[0], accounts[1], unknown[0], unknown[1], closed, days, is_late, due_since)


# How the figures of a loan follow from its schedule


def _at_least_a_cent(amount: Decimal | None) -> Decimal | None:
    """The amount; zero if it is less than half a cent, in either direction."""
    return NOTHING if amount is not None and abs(amount) < HALF_CENT else amount


def _loan_past_due(
    loan: Loan, schedule: Schedule, copied_on: date, today: date
) -> tuple[Decimal | None, NotKnown | None]:
    if not schedule.rows:
        return _past_due_without_schedule(loan, today)
    owed = [row for row in schedule.rows if row.is_owed]
    overdue = [row for row in owed if row.due_date and row.due_date < copied_on]
    if any(row.due_date is None for row in owed):
        return None, NotKnown.NO_DATE
    if not all(row.has_known_marker for row in overdue):
        return None, NotKnown.UNKNOWN_STATUS
    amount = total(row.total for row in overdue) if overdue else NOTHING
    if amount is None:
        return None, NotKnown.NO_TOTAL
    return (None, NotKnown.DELINQUENT) if not amount and loan.delinquent else (amount, None)


def _past_due_without_schedule(loan: Loan, today: date) -> tuple[Decimal | None, NotKnown | None]:
    if loan.delinquent:
        return None, NotKnown.DELINQUENT if _starts_later(loan, today) else NotKnown.NO_SCHEDULE
    if _starts_later(loan, today):
        return NOTHING, None
    return None, NotKnown.NO_SCHEDULE_YET if _is_new(loan, today) else NotKnown.NO_SCHEDULE


def _is_new(loan: Loan, today: date) -> bool:
    return loan.opening_date is not None and (today - loan.opening_date).days <= NEW_LOAN_DAYS


def _loan_due_since(schedule: Schedule, copied_on: date, today: date) -> DueSince | None:
    rows = schedule.due_since(copied_on, today)
    days = [row.due_date for row in rows if row.due_date]
    if not days:
        return None
    is_known = all(row.has_known_marker for row in rows)
    return DueSince(len(days), total(row.total for row in rows) if is_known else None, min(days))


def _starts_later(loan: Loan, today: date) -> bool:
    return loan.repayments_start_date is not None and loan.repayments_start_date > today


def _remaining(schedule: Schedule, today: date) -> Decimal | None:
    owed = [row for row in schedule.rows if row.is_owed]
    is_known = all(row.has_known_marker for row in owed if row.due_date is None or row.due_date < today)
    if not schedule.rows or not is_known:
        return None
    return total(row.total for row in owed) if owed else NOTHING


def _counted_rows(schedule: Schedule) -> list[Installment]:
    """The rows that are paid or owed, without unpaid ones of zero."""
    return [row for row in schedule.rows if row.is_paid or row.is_owed]


def _loan_principal(loan: Loan, schedule: Schedule, today: date) -> Decimal | None:
    rows = _counted_rows(schedule)
    paid = [row for row in rows if row.is_paid]
    if not paid:
        return loan.amount if rows or _starts_later(loan, today) else None
    if any(row.due_date is None for row in rows):
        return None
    rows.sort(key=lambda row: (row.due_date or today, not row.is_paid))
    first = rows[: len(paid)]
    return first[-1].balance if all(row.is_paid for row in first) else None


def _loan_good_through(loan: Loan, schedule: Schedule, today: date) -> date:
    """The day before the figures change: something falls due, is paid, or repayments start."""
    days = [row.due_date for row in schedule.rows if row.is_owed and row.due_date and row.due_date >= today]
    days += [row.paid_on - ONE_DAY for row in schedule.rows if row.paid_on and row.paid_on > today]
    starts = loan.repayments_start_date
    if not _counted_rows(schedule) and starts and starts > today:
        days.append(starts - ONE_DAY)
    if not schedule.rows and loan.opening_date and _is_new(loan, today):
        days.append(loan.opening_date + timedelta(days=NEW_LOAN_DAYS))
    return min(days, default=FOREVER)
