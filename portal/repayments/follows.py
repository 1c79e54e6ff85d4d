"""What follows a payment that came back: whether it may be presented again, and what is scheduled against that."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import NamedTuple

from django.db.models import Q

import servicing
from portal.core.business_date import business_date
from portal.records.models import Repayment
from portal.records.repayments import answer_of
from portal.repayments.returns import is_dropped_from_list
from portal.ui import wording
from servicing.promises import SCHEDULED
from servicing.return_codes import (
    FORBIDS_MORE,
    MAX_PRESENTMENTS,
    PRESENTMENT_DAYS,
    Consequence,
    consequence_of,
    describe_return_code,
)

REPEAT_DAYS = 90
# A bank account's ID, or the key of a loan or line whose payment names none.
Payer = str | int | None


class Presentment(NamedTuple):
    """A payment of some amount that came back."""

    amount: Decimal | None
    day: date


@dataclass(frozen=True)
class WhatFollows:
    """What follows a returned payment."""

    code: str
    amount: Decimal | None
    presentments: int
    """Of this amount from this account within 180 days, up to this one."""
    last_day: date | None
    """The end of these days."""
    repeats: int
    """The payments of any amount from this account that came back within 90 days."""
    following: servicing.Repayment | None
    """The next payment scheduled from this account."""

    @property
    def consequence(self) -> Consequence:
        return consequence_of(self.code)

    @property
    def is_presented_again(self) -> bool:
        """Whether the code allows more than one presentment."""
        return self.consequence == Consequence.PRESENT_AGAIN

    @property
    def has_more(self) -> bool:
        """Whether another presentment is left."""
        in_time = self.last_day is None or business_date() <= self.last_day
        return self.is_presented_again and self.presentments < MAX_PRESENTMENTS and in_time

    @property
    def words(self) -> str:
        """The consequence: "Up to two more by May 26, 2027"."""
        if not self.is_presented_again:
            return str(self.consequence)
        until = wording.day(self.last_day)
        if self.presentments >= MAX_PRESENTMENTS:
            return (
                f"No more: {self.presentments} payments of this amount came back in {PRESENTMENT_DAYS} days"
            )
        if not self.has_more:
            return f"No more: its 180 days ended {until}"
        left = "One more" if self.presentments == MAX_PRESENTMENTS - 1 else "Up to two more"
        return f"{left} by {until}" if until else left

    @property
    def presentment_words(self) -> str:
        """Such as "1 of 3"; without a limit, only the number."""
        return (
            f"{self.presentments} of {MAX_PRESENTMENTS}"
            if self.is_presented_again
            else f"{self.presentments}"
        )

    @property
    def is_conflict(self) -> bool:
        """Whether a payment is scheduled although the code says not again."""
        return self.following is not None and self.consequence in FORBIDS_MORE

    @property
    def following_words(self) -> str:
        """Such as "$1,827.70 on Dec 3, 2026"."""
        if self.following is None:
            return ""
        amount = wording.money(self.following.amount) or "An unknown amount"
        return f"{amount} on {wording.day(self.following.effective_date)}"

    @property
    def sentence(self) -> str:
        """All of it: "R02: account closed. $1,827.70 is scheduled again on Dec 3, 2026."."""
        description = describe_return_code(self.code)
        parts = [f"{self.code}: {description[:1].lower()}{description[1:]}"] if description else []
        parts.append(self.words)
        if self.following:
            amount = wording.money(self.following.amount) or "An unknown amount"
            again = "again " if self.amount is not None and self.following.amount == self.amount else ""
            parts.append(f"{amount} is scheduled {again}on {wording.day(self.following.effective_date)}")
        return " ".join(f"{part}." for part in parts)


def what_follows(returned: Sequence[Repayment]) -> dict[int, WhatFollows]:
    """What follows each of these payments, by key."""
    presented, scheduled = _presentments(returned), _scheduled(returned)
    return {one.pk: _follow(one, presented[_payer(one)], scheduled.get(_payer(one))) for one in returned}


def _follow(
    one: Repayment, presented: Sequence[Presentment], following: servicing.Repayment | None
) -> WhatFollows:
    day = one.effective_on
    start = day - timedelta(days=PRESENTMENT_DAYS) if day else None
    same = [each.day for each in presented if each.amount == one.amount and one.amount is not None]
    days = [each for each in same if start and start <= each <= day] if day else []
    recent = business_date() - timedelta(days=REPEAT_DAYS)
    return WhatFollows(
        code=one.code,
        amount=one.amount,
        presentments=max(len(days), 1),
        last_day=min(days, default=day) + timedelta(days=PRESENTMENT_DAYS) if day else None,
        repeats=sum(each.day >= recent for each in presented) if one.bank_account else 0,
        following=following,
    )


def _payer(repayment: Repayment) -> Payer:
    return repayment.bank_account or repayment.account_id


def _of_payers(returned: Iterable[Repayment]) -> Q:
    """The condition that a payment is from the same bank account or, without one, of the same loan or line."""
    banks = {one.bank_account for one in returned if one.bank_account}
    accounts = {one.account_id for one in returned if not one.bank_account and one.account_id}
    return Q(bank_account__in=banks) | Q(account__in=accounts, bank_account="")


def _presentments(returned: Sequence[Repayment]) -> dict[Payer, list[Presentment]]:
    found: dict[Payer, list[Presentment]] = defaultdict(list)
    if days := [one.effective_on for one in returned if one.effective_on]:
        first = min(days) - timedelta(days=PRESENTMENT_DAYS)
        rows = Repayment.objects.filter(_of_payers(returned), has_failed=True, effective_on__gte=first)
        for one in rows.only("account_id", "bank_account", "amount", "effective_on"):
            if one.effective_on:
                found[_payer(one)].append(Presentment(one.amount, one.effective_on))
    return found


def _scheduled(returned: Sequence[Repayment]) -> dict[Payer, servicing.Repayment]:
    found: dict[Payer, servicing.Repayment] = {}
    if returned:
        upcoming = Repayment.objects.filter(
            _of_payers(returned), ~is_dropped_from_list(), status=SCHEDULED, effective_on__gte=business_date()
        )
        for one in upcoming.order_by("effective_on", "pk"):
            found.setdefault(_payer(one), answer_of(one))
    return found
