"""Where a borrower stands over all its accounts: the four cards of its page, from the copies that are at hand.

Every figure is one the service told or a plain sum of such; a sum with a missing part is no sum.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cached_property

from portal.readings import Freshness, Reading
from portal.registry.models import Record
from portal.ui import wording
from servicing import Loan, Repayment, Statement
from servicing.schedules import schedule_of, total

SCHEDULED = "SCHEDULED"


@dataclass(frozen=True)
class LoansCard:
    """All loans together."""

    fresh: Freshness
    count: int
    amount: Decimal | None
    active: int
    delinquent: int
    why_no_sum: str

    @property
    def delinquent_words(self) -> str:
        return "Delinquent" if self.count == 1 else f"{self.delinquent} delinquent"

    @property
    def active_words(self) -> str:
        return "Active" if self.count == 1 else f"{self.active} active"


@dataclass(frozen=True)
class LinesCard:
    """All lines of credit together."""

    fresh: Freshness
    count: int
    limit: Decimal | None
    available: Decimal | None
    past_due: Decimal | None
    days_past_due: int | None
    why_no_sum: str

    @property
    def past_due_words(self) -> str:
        return f"{self.days_past_due} day{'' if self.days_past_due == 1 else 's'} past due"

    @property
    def used(self) -> Decimal | None:
        """What is drawn: limit less available."""
        return None if self.limit is None or self.available is None else self.limit - self.available

    @property
    def used_percent(self) -> int | None:
        return wording.percent(self.used, self.limit)


@dataclass(frozen=True)
class Due:
    """One payment that is to come."""

    record: Record
    on: date
    amount: Decimal | None
    autopay: bool | None


@dataclass(frozen=True)
class NextPaymentCard:
    """The earliest payment to come, from loans' schedules and lines' statements."""

    fresh: Freshness
    due: Due | None


@dataclass(frozen=True)
class LastRepaymentCard:
    """The latest repayment that is not merely scheduled."""

    fresh: Freshness
    repayment: Repayment | None
    record: Record | None


class Position:
    """The four cards, from the readings of loans, lines and the repayments of both; each is made when asked for."""

    def __init__(
        self,
        loans: Sequence[Reading],
        lines: Sequence[Reading],
        lists: Sequence[Reading],
        *,
        today: date,
    ) -> None:
        self._loans = loans
        self._lines = lines
        self._lists = lists
        self._today = today

    @cached_property
    def loans(self) -> LoansCard:
        return _loans(self._loans)

    @cached_property
    def lines(self) -> LinesCard:
        return _lines(self._lines)

    @cached_property
    def next_payment(self) -> NextPaymentCard:
        accounts = [*self._loans, *self._lines]
        return NextPaymentCard(Freshness(accounts), _next_due(accounts, self._today))

    @cached_property
    def last_repayment(self) -> LastRepaymentCard:
        return _last_repayment(self._lists, self._today)


def _loans(readings: Sequence[Reading]) -> LoansCard:
    told = [answer for one in readings if isinstance(answer := one.answer, Loan)]
    whole = len(told) == len(readings)
    return LoansCard(
        fresh=Freshness(readings),
        count=len(readings),
        amount=total(loan.amount for loan in told) if whole else None,
        active=sum((loan.status or "").upper() == "ACTIVE" for loan in told),
        delinquent=sum(loan.delinquent is True for loan in told),
        why_no_sum=_why_no_sum(readings, len(told), "amount"),
    )


def _lines(readings: Sequence[Reading]) -> LinesCard:
    told = [answer for one in readings if isinstance(answer := one.answer, Statement)]
    whole = len(told) == len(readings)
    return LinesCard(
        fresh=Freshness(readings),
        count=len(readings),
        limit=total(line.credit_limit for line in told) if whole else None,
        available=total(line.available_credit for line in told) if whole else None,
        past_due=total(line.past_due_balance for line in told) if whole else None,
        days_past_due=max((line.days_past_due for line in told if line.days_past_due), default=None),
        why_no_sum=_why_no_sum(readings, len(told), "balance"),
    )


def _why_no_sum(readings: Sequence[Reading], told: int, part: str) -> str:
    """What a sum waits for, or whose call left a part of it out, and when."""
    unread = len(readings) - told
    if unread and told:
        return f"unknown until {unread} more {'is' if unread == 1 else 'are'} read"
    if unread:
        return "unknown until read"
    if told == 1:
        return readings[0].record.why_null
    return f"no sum, the {part} of one is not provided by the service"


def _next_due(readings: Sequence[Reading], today: date) -> Due | None:
    dues = [due for one in readings if (due := _due(one, today))]
    return min(dues, key=lambda due: due.on, default=None)


def _due(reading: Reading, today: date) -> Due | None:
    match reading.answer:
        case Loan() as loan:
            row = schedule_of(loan).next_due(today)
            return (
                Due(reading.record, row.due_date, row.total, loan.autopay_enabled)
                if row and row.due_date
                else None
            )
        case Statement(payment_due_date=date() as day) as line if day >= today:
            return Due(reading.record, day, line.payment_amount_due, None)
    return None


def _last_repayment(lists: Sequence[Reading], today: date) -> LastRepaymentCard:
    past = [
        (repayment.effective_date, repayment, one.record)
        for one in lists
        for repayment in one.repayments
        if repayment.effective_date and _is_past(repayment, today)
    ]
    _, repayment, record = max(past, key=lambda item: item[0], default=(None, None, None))
    return LastRepaymentCard(Freshness(lists), repayment, record)


def _is_past(repayment: Repayment, today: date) -> bool:
    is_scheduled = (repayment.status or "").upper() == SCHEDULED
    return not is_scheduled and repayment.effective_date is not None and repayment.effective_date <= today
