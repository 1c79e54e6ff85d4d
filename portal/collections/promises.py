"""Promises, decided by the repayments on file of their accounts whenever they are read."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery
from django.urls import reverse

import servicing
from portal.collections.models import Contact, Promise
from portal.registry.figures import ACCOUNTS
from portal.registry.models import Answer, Record, Repayment
from portal.registry.sources import REPAYMENTS_OF
from portal.repayments.returns import accounts_with_returns, is_dropped_from_list
from portal.repayments.table import SCHEDULED
from portal.runtime.business_date import business_date
from portal.ui import wording
from servicing import promises
from servicing.business_days import business_day_after, is_business_day
from servicing.promises import Decision, PromiseState, SeenRepayment

RECENT_DAYS = 30
LOOKS = {
    PromiseState.OPEN: "waiting",
    PromiseState.PENDING: "waiting",
    PromiseState.KEPT: "ok",
    PromiseState.WAITING: "neutral",
    PromiseState.BROKEN: "bad",
    PromiseState.NOT_KNOWN: "warn",
    PromiseState.WITHDRAWN: "neutral",
}
UNDECIDED = (PromiseState.OPEN, PromiseState.PENDING, PromiseState.WAITING, PromiseState.NOT_KNOWN)


@dataclass(frozen=True)
class DecidedPromise:
    """A promise as decided by the repayments on file."""

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
        """What was paid, if that says more than the state, or why the promise was withdrawn."""
        if self.state == PromiseState.WITHDRAWN:
            return f"by {self.promise.withdrawn_by}: {self.promise.reason}"
        paid, amount = (wording.money(one) for one in (self.decision.paid, self.promise.amount))
        if self.state == PromiseState.WAITING:
            return f"{paid} of {amount} by the last update"
        return f"paid {paid} of {amount}" if self.decision.paid or self.state == PromiseState.BROKEN else ""

    @property
    def links(self) -> list[tuple[str, str]]:
        """Words and address of the repayments that decide it or leave it open, and of those returned."""
        found = (
            (self.decision.counted, "paid"),
            (self.decision.scheduled, "scheduled"),
            (self.decision.returned, "returned"),
            (self.decision.unclear, "with an unknown status"),
        )
        return [
            (
                f"{wording.money(one.amount) or 'An unknown amount'} {words} {wording.day(one.effective_date)}",
                reverse("repayments:detail", args=[one.uuid]),
            )
            for repayments, words in found
            for one in repayments
        ]


def decide_promises(
    account_uuids: Iterable[str], *, with_contacts: bool = False
) -> dict[str, list[DecidedPromise]]:
    """Decide the promises of each of these accounts, newest first."""
    lists = Answer.objects.filter(kind__in=REPAYMENTS_OF.values(), uuid=OuterRef("account_uuid"))
    made = Promise.objects.select_related("contact") if with_contacts else Promise.objects
    saved: dict[str, list[Promise]] = defaultdict(list)
    read_on: dict[str, date | None] = {}
    found = made.filter(account_uuid__in=set(account_uuids))
    for promise in found.annotate(list_read_on=Subquery(lists.values("last_on")[:1])):
        saved[promise.account_uuid].append(promise)
        read_on[promise.account_uuid] = promise.list_read_on
    if not saved:
        return {}
    repayments, today, decided = _repayments(saved), business_date(), {}
    for uuid, of_account in saved.items():
        decisions = promises.decide(
            [_plain(one) for one in of_account],
            repayments.get(uuid, ()),
            today=today,
            read_on=read_on.get(uuid),
            grace_days=settings.PROMISE_GRACE_DAYS,
        )
        decided[uuid] = [DecidedPromise(*pair) for pair in zip(of_account, decisions, strict=True)][::-1]
    _note_broken(one for of_account in decided.values() for one in of_account)
    return decided


def _note_broken(decided: Iterable[DecidedPromise]) -> None:
    """Save the day on which a promise is first seen broken, because its update may come long after its deadline.

    A state that says nothing about it leaves that day as it is.
    """
    news = [
        one.promise
        for one in decided
        if one.state not in (PromiseState.WAITING, PromiseState.NOT_KNOWN)
        if (one.state == PromiseState.BROKEN) != (one.promise.broken_on is not None)
    ]
    for promise in news:
        promise.broken_on = None if promise.broken_on else business_date()
    if news:
        Promise.objects.bulk_update(news, ["broken_on"])


def _plain(promise: Promise) -> promises.Promise:
    return promises.Promise(
        amount=promise.amount,
        day=promise.day,
        logged_on=promise.logged_on,
        logged_at=promise.logged_at,
        is_withdrawn=promise.withdrawn_at is not None,
    )


def _repayments(saved: Mapping[str, list[Promise]]) -> dict[str, list[SeenRepayment]]:
    """The repayments of accounts since their first promise."""
    first = min(one.logged_on for of_account in saved.values() for one in of_account)
    columns = ("account__uuid", "uuid", "payment_type", "effective_on", "amount", "status", "first_seen_at")
    rows = (
        Repayment.objects.filter(
            Q(effective_on__gte=first) | Q(effective_on=None),
            account__uuid__in=saved,
            account__kind__in=ACCOUNTS,
        )
        .exclude(Q(status=SCHEDULED) & is_dropped_from_list())
        .values_list(*columns)
    )
    found: dict[str, list[SeenRepayment]] = defaultdict(list)
    for account, uuid, payment_type, day, amount, status, seen_at in rows:
        repayment = servicing.Repayment(
            uuid=uuid,
            payment_type=payment_type or None,
            effective_date=day,
            amount=amount,
            status=status or None,
        )
        found[account].append(SeenRepayment(repayment, seen_at))
    return found


def find_promises(condition: Q, states: Collection[PromiseState]) -> list[DecidedPromise]:
    """The promises of active accounts that meet a condition and have one of these states, latest day first."""
    accounts = dict(_of_active_accounts().filter(condition).values_list("pk", "account_uuid"))
    if not accounts:
        return []
    found = [
        one
        for of_account in decide_promises(accounts.values(), with_contacts=True).values()
        for one in of_account
        if one.promise.pk in accounts and one.state in states
    ]
    return sorted(found, key=lambda one: (one.promise.day, one.promise.pk), reverse=True)


def _of_active_accounts() -> QuerySet[Promise]:
    """The promises of active accounts that weren't withdrawn."""
    account = Record.objects.filter(
        kind__in=ACCOUNTS, uuid=OuterRef("account_uuid"), archived_at__isnull=True
    )
    return Promise.objects.filter(Exists(account), withdrawn_at=None)


def due_today() -> QuerySet[Promise]:
    """The promises due today that aren't kept yet.

    Thousands may be due, so only those are decided whose account has a payment that could have kept them.
    """
    today = business_date()
    payment = Repayment.objects.filter(
        account__uuid=OuterRef("account_uuid"),
        account__kind__in=ACCOUNTS,
        effective_on__gte=OuterRef("logged_on"),
        effective_on__lte=business_day_after(today, settings.PROMISE_GRACE_DAYS),
    )
    kept = find_promises(Q(Exists(payment), day=today), [PromiseState.KEPT])
    return _of_active_accounts().filter(day=today).exclude(pk__in=[one.promise.pk for one in kept])


def broken_since_yesterday() -> list[DecidedPromise]:
    """The promises broken since yesterday, on Mondays since Friday."""
    first = business_date() - timedelta(days=1)
    while not is_business_day(first):
        first -= timedelta(days=1)
    return broken_since(first)


def broken_and_unanswered() -> list[DecidedPromise]:
    """The broken promises on which nobody acted: there was no contact about the account since they broke."""
    recent = business_date() - timedelta(days=RECENT_DAYS)
    about = Q(account_uuid=OuterRef("account_uuid")) | Q(
        account_uuid="", borrower_uuid=OuterRef("contact__borrower_uuid")
    )
    contacts = Contact.objects.filter(about, day__gte=OuterRef("broken_on"))
    found = _find_broken(Q(~Exists(contacts), broken_on__isnull=False), since=recent)
    answered = Promise.objects.filter(Exists(contacts), pk__in=[one.promise.pk for one in found])
    keys = set(answered.values_list("pk", flat=True))
    return [one for one in found if one.promise.pk not in keys]


def broken_since(first: date) -> list[DecidedPromise]:
    """The promises broken on this day or later, by a missing or a returned payment.

    What broke a promise may be read long after it happened, so the day on which it was seen counts.
    """
    today, found = business_date(), _find_broken(Q(broken_on__gte=first), since=first)
    return [one for one in found if (one.promise.broken_on or today) >= first]


def _find_broken(known: Q, *, since: date) -> list[DecidedPromise]:
    """The broken promises among those known as broken, recent ones, and those with payments returned since then."""
    today = business_date()
    recent = today - timedelta(days=RECENT_DAYS)
    candidates = known | Q(day__gte=recent, day__lt=today)
    if Promise.objects.filter(day__lt=recent).exists():  # Only a late return can break one of these.
        candidates |= Q(account_uuid__in=accounts_with_returns(since))
    return find_promises(candidates, [PromiseState.BROKEN])


def accounts_with(name: str) -> QuerySet[Promise, Any] | list[str]:
    """The accounts with promises due today, or with recent ones that are undecided, kept or broken."""
    recent = business_date() - timedelta(days=RECENT_DAYS)
    match name:
        case "due":
            return due_today().order_by().values("account_uuid")
        case "new":
            found = broken_since_yesterday()
        case "unanswered":
            found = broken_and_unanswered()
        case "broken":
            found = broken_since(recent)
        case "kept":
            found = find_promises(Q(day__gte=recent), [PromiseState.KEPT])
        case _:
            found = find_promises(Q(day__gte=recent), UNDECIDED)
    return list({one.promise.account_uuid for one in found})
