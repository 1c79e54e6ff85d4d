"""Promises to pay, decided by the repayments of their account: kept, broken, pending, or waiting for an update.

Nobody marks a promise by hand. The same promises and repayments always give the same decisions.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from functools import cache
from typing import Final

from servicing.figures import NOTHING, ONE_DAY
from servicing.repayments import Repayment
from servicing.values import is_same_word

COUNTED_TYPES: Final = ("SINGLE_PAYMENT", "PAYOFF")
RETURNED: Final = "FAILED_AFTER_SUCCESS"
_MONDAY, _THURSDAY, _SATURDAY, _SUNDAY = 0, 3, 5, 6
_FIRST_JUNETEENTH: Final = 2022


class PromiseState(StrEnum):
    """What the repayments say about a promise."""

    OPEN = "Open"
    PENDING = "Payment pending"
    KEPT = "Kept"
    WAITING = "Awaiting update"
    BROKEN = "Broken"
    WITHDRAWN = "Withdrawn"


@dataclass(frozen=True, kw_only=True)
class Promise:
    """An amount that somebody promised to pay by a day."""

    amount: Decimal
    day: date
    logged_on: date
    """The business date on which it was logged."""
    logged_at: datetime
    is_withdrawn: bool = False


@dataclass(frozen=True)
class SeenRepayment:
    """A repayment and the time it was first seen."""

    repayment: Repayment
    first_seen_at: datetime


@dataclass(frozen=True, kw_only=True)
class Decision:
    """The state of a promise, and the repayments that decide it."""

    state: PromiseState
    deadline: date
    paid: Decimal = NOTHING
    counted: Sequence[Repayment] = ()
    scheduled: Sequence[Repayment] = ()
    returned: Sequence[Repayment] = ()
    """Repayments in time that were returned, and so don't count."""


@dataclass
class _Payments:
    """The repayments of an account that no promise has used yet, by day."""

    unused: list[SeenRepayment]
    used: set[int] = field(default_factory=set)

    def take(self, promise: Promise, deadline: date, status: str, up_to: Decimal) -> list[Repayment]:
        """Use repayments with a status until they add up to an amount."""
        taken: list[Repayment] = []
        known = NOTHING
        for number, seen in enumerate(self.unused):
            one = seen.repayment
            if known >= up_to:
                break
            if number in self.used or not is_same_word(one.status, status):
                continue
            if _is_counted_type(one) and _is_in_time(seen, promise, deadline) and one.amount:
                self.used.add(number)
                taken.append(one)
                known += one.amount
        return taken


def decide(
    promises: Sequence[Promise],
    repayments: Iterable[SeenRepayment],
    *,
    today: date,
    read_on: date | None,
    grace_days: int,
) -> list[Decision]:
    """Decide the promises of one account, in their order; each repayment counts for one of them, the oldest first.

    ``read_on`` is the business date of the answer with the repayments: a promise is broken only by an answer from
    after its deadline.

    A payment that is still SCHEDULED although its date has passed hasn't settled yet, so its promise stays pending
    and nobody is called about it. Once the deadline has passed, that takes scheduled payments that can still make up
    the whole amount.
    """
    dated = [one for one in repayments if one.repayment.effective_date]
    payments = _Payments(sorted(dated, key=lambda one: (one.repayment.effective_date, one.repayment.uuid)))
    in_order = sorted(range(len(promises)), key=lambda number: promises[number].logged_at)
    decisions: dict[int, Decision] = {}
    for number in in_order:
        promise = promises[number]
        deadline = business_day_after(promise.day, grace_days)
        if promise.is_withdrawn:
            decisions[number] = Decision(state=PromiseState.WITHDRAWN, deadline=deadline)
            continue
        counted = payments.take(promise, deadline, "SUCCEEDED", promise.amount)
        paid = sum((one.amount for one in counted if one.amount), NOTHING)
        scheduled = payments.take(promise, deadline, "SCHEDULED", promise.amount - paid)
        expected = sum((one.amount for one in scheduled if one.amount), paid)
        is_pending = expected >= promise.amount or (bool(scheduled) and today <= deadline)
        decisions[number] = Decision(
            state=_state(promise, paid, is_pending, deadline, today, read_on),
            deadline=deadline,
            paid=paid,
            counted=counted,
            scheduled=scheduled,
            returned=[
                one.repayment
                for one in payments.unused
                if is_same_word(one.repayment.status, RETURNED) and _is_in_time(one, promise, deadline)
            ],
        )
    return [decisions[number] for number in range(len(promises))]


def _state(
    promise: Promise, paid: Decimal, is_pending: bool, deadline: date, today: date, read_on: date | None
) -> PromiseState:
    if paid >= promise.amount:
        return PromiseState.KEPT
    if is_pending:
        return PromiseState.PENDING
    if today <= deadline:
        return PromiseState.OPEN
    return PromiseState.BROKEN if read_on and read_on > deadline else PromiseState.WAITING


def _is_counted_type(repayment: Repayment) -> bool:
    kind = repayment.payment_type
    is_usual = kind is None or any(is_same_word(kind, one) for one in COUNTED_TYPES)
    return is_usual and repayment.amount is not None and repayment.amount > 0


def _is_in_time(seen: SeenRepayment, promise: Promise, deadline: date) -> bool:
    """Whether it is dated after the promise was logged; on the same day, it must also have been seen later."""
    day = seen.repayment.effective_date
    if day is None or not promise.logged_on <= day <= deadline:
        return False
    return day > promise.logged_on or seen.first_seen_at > promise.logged_at


# Business days


@cache
def business_day_after(day: date, number: int) -> date:
    """The day this many business days later."""
    while number:
        day += ONE_DAY
        number -= is_business_day(day)
    return day


def is_business_day(day: date) -> bool:
    """Monday to Friday, except the holidays of the Federal Reserve."""
    return day.weekday() < _SATURDAY and day not in federal_reserve_holidays(day.year)


@cache
def federal_reserve_holidays(year: int) -> frozenset[date]:
    """The days of a year on which the Federal Reserve Banks are closed.

    One that falls on a Sunday is observed on Monday; one on a Saturday isn't observed.
    """
    fixed = [date(year, 1, 1), date(year, 7, 4), date(year, 11, 11), date(year, 12, 25)]
    if year >= _FIRST_JUNETEENTH:
        fixed.append(date(year, 6, 19))
    days = (
        *(day + ONE_DAY if day.weekday() == _SUNDAY else day for day in fixed if day.weekday() != _SATURDAY),
        _nth_weekday(year, 1, _MONDAY, 3),
        _nth_weekday(year, 2, _MONDAY, 3),
        _nth_weekday(year, 6, _MONDAY, 1) - timedelta(days=7),
        _nth_weekday(year, 9, _MONDAY, 1),
        _nth_weekday(year, 10, _MONDAY, 2),
        _nth_weekday(year, 11, _THURSDAY, 4),
    )
    return frozenset(days)


def _nth_weekday(year: int, month: int, weekday: int, number: int) -> date:
    first = date(year, month, 1)
    return first + timedelta(days=(weekday - first.weekday()) % 7 + 7 * (number - 1))
