"""Promises as staff read them: decided by the repayments on file of their accounts, whenever they are read."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import NamedTuple

from django.conf import settings
from django.urls import reverse

from portal.collections.models import Promise
from portal.registry.models import Kind, Record
from portal.registry.sources import REPAYMENTS_OF
from portal.repayments.returns import returned_since
from portal.runtime.business_date import business_date
from portal.ui import wording
from servicing import Repayment, promises
from servicing.promises import Decision, PromiseState, SeenRepayment

RECENT_DAYS = 30
LOOKS = {
    PromiseState.OPEN: "waiting",
    PromiseState.PENDING: "waiting",
    PromiseState.KEPT: "ok",
    PromiseState.WAITING: "neutral",
    PromiseState.BROKEN: "bad",
    PromiseState.WITHDRAWN: "neutral",
}
UNDECIDED = (PromiseState.OPEN, PromiseState.PENDING, PromiseState.WAITING)


class RepaymentLink(NamedTuple):
    """A repayment that decides a promise, as a link."""

    words: str
    url: str


@dataclass(frozen=True)
class DecidedPromise:
    """A promise and what the repayments on file say about it."""

    promise: Promise
    decision: Decision

    @property
    def state(self) -> PromiseState:
        return self.decision.state

    @property
    def look(self) -> str:
        """The look of its badge."""
        return LOOKS[self.state]

    @property
    def words(self) -> str:
        """What was paid, where that says more than the state; and why a promise was withdrawn."""
        if self.state == PromiseState.WITHDRAWN:
            return f"by {self.promise.withdrawn_by}: {self.promise.reason}"
        paid, amount = (wording.money(one) for one in (self.decision.paid, self.promise.amount))
        if self.state == PromiseState.WAITING:
            return f"{paid} of {amount} by the last update"
        return f"paid {paid} of {amount}" if self.decision.paid or self.state == PromiseState.BROKEN else ""

    @property
    def links(self) -> list[RepaymentLink]:
        """The repayments that decide it, and those in its time that don't count any more."""
        found = (
            (self.decision.counted, "paid"),
            (self.decision.scheduled, "scheduled"),
            (self.decision.returned, "returned"),
        )
        return [
            RepaymentLink(
                f"{wording.money(one.amount)} {words} {wording.day(one.effective_date)}",
                reverse("repayments:detail", args=[one.uuid]),
            )
            for repayments, words in found
            for one in repayments
        ]


def decide_promises(account_uuids: Iterable[str]) -> dict[str, list[DecidedPromise]]:
    """The promises of each of these accounts, newest first, decided from what is on file."""
    saved: dict[str, list[Promise]] = defaultdict(list)
    for promise in Promise.objects.filter(account_uuid__in=set(account_uuids)).select_related("contact"):
        saved[promise.account_uuid].append(promise)
    if not saved:
        return {}
    repayments = _repayments(saved)
    lists = Record.objects.filter(kind__in=REPAYMENTS_OF.values(), uuid__in=saved)
    read_on = dict(lists.values_list("uuid", "answer_day"))
    decided = {}
    for uuid, of_account in saved.items():
        decisions = promises.decide(
            [_plain(one) for one in of_account],
            repayments.get(uuid, ()),
            today=business_date(),
            read_on=read_on.get(uuid),
            grace_days=settings.PROMISE_GRACE_DAYS,
        )
        decided[uuid] = [DecidedPromise(*pair) for pair in zip(of_account, decisions, strict=True)][::-1]
    return decided


def _plain(promise: Promise) -> promises.Promise:
    return promises.Promise(
        amount=promise.amount,
        day=promise.day,
        logged_on=promise.logged_on,
        logged_at=promise.logged_at,
        is_withdrawn=promise.withdrawn_at is not None,
    )


def _repayments(saved: Mapping[str, list[Promise]]) -> dict[str, list[SeenRepayment]]:
    first = min(one.logged_on for of_account in saved.values() for one in of_account)
    rows = Record.objects.filter(
        kind=Kind.REPAYMENT, parent_uuid__in=saved, key_date__gte=first, archived_at__isnull=True
    ).values_list("parent_uuid", "uuid", "subtype", "key_date", "amount", "status", "created_at")
    found: dict[str, list[SeenRepayment]] = defaultdict(list)
    for parent, uuid, subtype, day, amount, status, seen_at in rows:
        repayment = Repayment(
            uuid=uuid, payment_type=subtype or None, effective_date=day, amount=amount, status=status or None
        )
        found[parent].append(SeenRepayment(repayment, seen_at))
    return found


def recent_promises(first: date, last: date, states: Collection[PromiseState]) -> list[DecidedPromise]:
    """The promises for these days that are in one of these states, the latest day first."""
    made = Promise.objects.filter(day__gte=first, day__lte=last, withdrawn_at=None)
    decided = decide_promises(made.values_list("account_uuid", flat=True))
    found = [
        one
        for of_account in decided.values()
        for one in of_account
        if first <= one.promise.day <= last and one.state in states
    ]
    return sorted(found, key=lambda one: (one.promise.day, one.promise.pk), reverse=True)


def due_today() -> list[DecidedPromise]:
    """The promises for today that aren't kept yet."""
    today = business_date()
    return recent_promises(today, today, UNDECIDED)


def broken_since_yesterday() -> list[DecidedPromise]:
    """The promises that broke yesterday or later, on Mondays since Friday.

    One breaks when its deadline passes, or when a payment that kept it turns out to be returned.
    """
    if not Promise.objects.exists():  # Without promises, no return can break one.
        return []
    today = business_date()
    first = today - timedelta(days=1)
    while not promises.is_business_day(first):
        first -= timedelta(days=1)
    found = {
        one.promise.pk: one
        for one in recent_promises(today - timedelta(days=RECENT_DAYS), today, [PromiseState.BROKEN])
        if one.decision.deadline >= first - timedelta(days=1)
    }
    returned = {one.uuid for one, _ in returned_since(first)}
    accounts = Record.objects.filter(kind=Kind.REPAYMENT, uuid__in=returned).values_list(
        "parent_uuid", flat=True
    )
    for of_account in decide_promises(accounts).values():
        for one in of_account:
            is_undone = any(payment.uuid in returned for payment in one.decision.returned)
            if one.state == PromiseState.BROKEN and is_undone:
                found[one.promise.pk] = one
    return sorted(found.values(), key=lambda one: (one.promise.day, one.promise.pk), reverse=True)


def accounts_with(name: str) -> list[str]:
    """The accounts with promises that are due today, undecided or broken."""
    today = business_date()
    recent = today - timedelta(days=RECENT_DAYS)
    match name:
        case "due":
            found = due_today()
        case "broken":
            found = recent_promises(recent, today, [PromiseState.BROKEN]) + broken_since_yesterday()
        case _:
            found = recent_promises(recent, date.max, UNDECIDED)
    return list({one.promise.account_uuid for one in found})


def promised_amount(found: Iterable[DecidedPromise]) -> Decimal:
    """What these promises add up to."""
    return sum((one.promise.amount for one in found), Decimal(0))
