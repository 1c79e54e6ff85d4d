"""Promises to pay, decided by the repayments of their account: kept, broken, pending, waiting for an update, not known.

Nobody marks a promise by hand. The same promises and repayments always give the same decisions.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Final

from servicing.business_days import business_day_after
from servicing.figures import NOTHING
from servicing.repayments import REVERSALS, Repayment, has_succeeded, is_collected, is_reversal
from servicing.values import is_same_word
from servicing.words import normal_word

SCHEDULED: Final = "SCHEDULED"
RETURNED: Final = "FAILED_AFTER_SUCCESS"
NOT_PAID: Final = ("CANCELED", "CANCELLED", "REJECTED", *REVERSALS)
"""The statuses of a repayment that certainly brings no money, beside those that begin with FAILED."""


class PromiseState(StrEnum):
    """What the repayments say about a promise."""

    OPEN = "Open"
    PENDING = "Payment pending"
    KEPT = "Kept"
    WAITING = "Awaiting update"
    BROKEN = "Broken"
    NOT_KNOWN = "Not known"
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
    unclear: Sequence[Repayment] = ()
    """Repayments in time whose status we don't know, so they may or may not have been paid."""


@dataclass
class _Payments:
    """The repayments of an account that no promise has used yet, by day."""

    unused: list[SeenRepayment]
    used: set[int] = field(default_factory=set)

    def take(
        self, promise: Promise, deadline: date, has_status: Callable[[Repayment], bool], up_to: Decimal
    ) -> list[Repayment]:
        """Use repayments with such a status until they add up to an amount."""
        taken: list[Repayment] = []
        known = NOTHING
        for number, seen in enumerate(self.unused):
            one = seen.repayment
            if known >= up_to:
                break
            if number in self.used or not has_status(one):
                continue
            if _can_count(one) and _is_in_time(seen, promise, deadline) and one.amount:
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
    the whole amount, in an answer from after the deadline.
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
        in_time = [one.repayment for one in payments.unused if _is_in_time(one, promise, deadline)]
        counted = payments.take(promise, deadline, is_collected, promise.amount)
        paid = sum((one.amount for one in counted if one.amount), NOTHING)
        scheduled = payments.take(promise, deadline, _is_scheduled, promise.amount - paid)
        expected = sum((one.amount for one in scheduled if one.amount), paid)
        unclear = [one for one in in_time if _is_unclear(one)]
        if not _may_reach(promise.amount - expected, unclear):
            unclear = []
        if paid >= promise.amount:
            state = PromiseState.KEPT
        elif today > deadline and (read_on is None or read_on <= deadline):
            state = PromiseState.WAITING
        elif unclear:
            state = PromiseState.NOT_KNOWN
        elif expected >= promise.amount or (scheduled and today <= deadline):
            state = PromiseState.PENDING
        else:
            state = PromiseState.OPEN if today <= deadline else PromiseState.BROKEN
        decisions[number] = Decision(
            state=state,
            deadline=deadline,
            paid=paid,
            counted=counted,
            scheduled=scheduled,
            returned=[one for one in in_time if is_same_word(one.status, RETURNED)],
            unclear=unclear,
        )
    return [decisions[number] for number in range(len(promises))]


def _may_reach(missing: Decimal, unclear: Sequence[Repayment]) -> bool:
    """Whether these could make up what is missing."""
    known = sum((one.amount for one in unclear if one.amount), NOTHING)
    return missing > 0 and (known >= missing or any(one.amount is None for one in unclear))


def _is_scheduled(repayment: Repayment) -> bool:
    return is_same_word(repayment.status, SCHEDULED)


def _is_unclear(repayment: Repayment) -> bool:
    """Whether it could count, but for a status or an amount that we don't know."""
    if has_succeeded(repayment) or _is_scheduled(repayment):
        return repayment.amount is None and not is_reversal(repayment)
    word = normal_word(repayment.status)
    is_failed = word in NOT_PAID or word.startswith("FAILED")
    may_count = repayment.amount is None or repayment.amount > 0
    return not is_failed and may_count and not is_reversal(repayment)


def _can_count(repayment: Repayment) -> bool:
    return repayment.amount is not None and repayment.amount > 0 and not is_reversal(repayment)


def _is_in_time(seen: SeenRepayment, promise: Promise, deadline: date) -> bool:
    """Whether it is dated after the promise was logged; on the same day, it must also have been seen later."""
    day = seen.repayment.effective_date
    if day is None or not promise.logged_on <= day <= deadline:
        return False
    return day > promise.logged_on or seen.first_seen_at > promise.logged_at
