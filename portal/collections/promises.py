"""The states of promises, decided by the repayments on file of their accounts.

All promises of an account are decided together whenever its list of repayments is received and when one of them is
logged or withdrawn. A deadline that passes decides them once more: right after business midnight, or before they are
read.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, timedelta

from django.conf import settings
from django.core.cache import cache
from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery

import servicing
from portal.collections.models import Contact, Promise
from portal.core.business_date import business_date
from portal.records.figures import ACCOUNTS
from portal.records.models import Account, Answer, Repayment
from portal.records.sources import REPAYMENTS_OF
from portal.repayments.returns import is_dropped_from_list
from portal.repayments.table import SCHEDULED
from servicing import promises
from servicing.business_days import is_business_day
from servicing.promises import Decision, PromiseState, SeenRepayment

RECENT_DAYS = 30
BATCH_SIZE = 500
DAY_SECONDS = 24 * 60 * 60
KEPT, BROKEN = PromiseState.KEPT.name, PromiseState.BROKEN.name
MAY_PASS_DEADLINE = [PromiseState.OPEN.name, PromiseState.PENDING.name, PromiseState.NOT_KNOWN.name]
UNDECIDED = [*MAY_PASS_DEADLINE, PromiseState.WAITING.name]


# --- Deciding ---


def decide_promises(account_uuids: Iterable[str]) -> None:
    """Decide the promises of these accounts anew and save their states."""
    wanted = sorted(set(account_uuids))
    for start in range(0, len(wanted), BATCH_SIZE):
        with transaction.atomic():
            _save_states(decisions_of(lock_accounts(wanted[start : start + BATCH_SIZE])))


def lock_accounts(account_uuids: Collection[str]) -> Collection[str]:
    """Wait until nobody else decides the promises of these accounts or saves their repayments."""
    lists = Answer.objects.filter(kind__in=REPAYMENTS_OF.values(), uuid__in=account_uuids)
    list(lists.order_by("pk").select_for_update().values_list("pk"))
    return account_uuids


def decide_outdated() -> None:
    """Decide the promises whose deadline has passed since they were decided, and those never decided."""
    outdated = Promise.objects.filter(
        Q(state="")
        | Q(state__in=MAY_PASS_DEADLINE, deadline__lt=business_date(), decided_on__lte=F("deadline"))
    )
    if accounts := list(outdated.order_by().values_list("account_uuid", flat=True)):
        decide_promises(accounts)


def ensure_decided() -> None:
    """Decide outdated promises before the first of them is read on a business date."""
    key = f"collections.decided:{business_date()}"
    if not cache.get(key):
        decide_outdated()
        cache.set(key, True, DAY_SECONDS)


def decisions_of(account_uuids: Collection[str]) -> dict[Promise, Decision]:
    """What the repayments on file say about the promises of these accounts."""
    saved: dict[str, list[Promise]] = defaultdict(list)
    read_on: dict[str, date | None] = {}
    lists = Answer.objects.filter(kind__in=REPAYMENTS_OF.values(), uuid=OuterRef("account_uuid"))
    made_on = Promise.objects.filter(account_uuid__in=account_uuids)
    for promise in made_on.annotate(list_read_on=Subquery(lists.values("last_on")[:1])):
        saved[promise.account_uuid].append(promise)
        read_on[promise.account_uuid] = promise.list_read_on
    if not saved:
        return {}
    repayments, decided = _repayments_since_promised(saved), dict[Promise, Decision]()
    for uuid, made in saved.items():
        decisions = promises.decide(
            [_plain(one) for one in made],
            repayments.get(uuid, ()),
            today=business_date(),
            read_on=read_on.get(uuid),
            grace_days=settings.PROMISE_GRACE_DAYS,
        )
        decided |= dict(zip(made, decisions, strict=True))
    return decided


def _save_states(decided: Mapping[Promise, Decision]) -> None:
    today = business_date()
    for promise, decision in decided.items():
        promise.state, promise.deadline = decision.state.name, decision.deadline
        promise.paid, promise.decided_on = decision.paid, today
        # The first of these days stays, also while an update is missing.
        if decision.state == PromiseState.BROKEN:
            promise.broken_on = promise.broken_on or today
        elif decision.state not in (PromiseState.WAITING, PromiseState.NOT_KNOWN):
            promise.broken_on = None
    columns = ["state", "deadline", "paid", "decided_on", "broken_on"]
    Promise.objects.bulk_update(decided, columns, batch_size=BATCH_SIZE)


def _plain(promise: Promise) -> promises.Promise:
    return promises.Promise(
        amount=promise.amount,
        day=promise.day,
        logged_on=promise.logged_on,
        logged_at=promise.logged_at,
        is_withdrawn=promise.withdrawn_at is not None,
    )


def _repayments_since_promised(saved: Mapping[str, Sequence[Promise]]) -> dict[str, list[SeenRepayment]]:
    first = min(one.logged_on for made in saved.values() for one in made)
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


# --- Reading ---


def current_promises() -> QuerySet[Promise]:
    """The promises of active accounts that weren't withdrawn, as decided today."""
    ensure_decided()
    account = Account.objects.filter(
        kind__in=ACCOUNTS, uuid=OuterRef("account_uuid"), archived_at__isnull=True
    )
    return Promise.objects.filter(Exists(account), withdrawn_at=None)


def due_today() -> QuerySet[Promise]:
    """The promises due today that aren't kept yet."""
    return current_promises().filter(day=business_date()).exclude(state=KEPT)


def broken_since_yesterday() -> QuerySet[Promise]:
    """The promises broken since yesterday, on Mondays since Friday."""
    first = business_date() - timedelta(days=1)
    while not is_business_day(first):
        first -= timedelta(days=1)
    return broken_since(first)


def broken_since(first: date) -> QuerySet[Promise]:
    """The promises broken on this day or later, by a missing or a returned payment.

    What broke a promise may be read long after it happened, so the day on which it was seen counts.
    """
    return current_promises().filter(state=BROKEN, broken_on__gte=first)


def broken_and_unanswered() -> QuerySet[Promise]:
    """The broken promises on which nobody acted: there was no contact about the account since they broke."""
    about = Q(account_uuid=OuterRef("account_uuid")) | Q(
        account_uuid="", borrower_uuid=OuterRef("contact__borrower_uuid")
    )
    contacts = Contact.objects.filter(about, day__gte=OuterRef("broken_on"))
    return current_promises().filter(~Exists(contacts), state=BROKEN)


def promises_with(name: str) -> QuerySet[Promise]:
    """The promises that a filter names: due today, or recent ones that are undecided, kept or broken."""
    recent = business_date() - timedelta(days=RECENT_DAYS)
    match name:
        case "due":
            return due_today()
        case "new":
            return broken_since_yesterday()
        case "unanswered":
            return broken_and_unanswered()
        case "broken":
            return broken_since(recent)
        case "kept":
            return current_promises().filter(day__gte=recent, state=KEPT)
        case _:
            return current_promises().filter(day__gte=recent, state__in=UNDECIDED)


def newest_promises(account_uuids: Iterable[str]) -> dict[str, Promise]:
    """The newest promise of each account that wasn't withdrawn."""
    ensure_decided()
    found = Promise.objects.filter(account_uuid__in=account_uuids, withdrawn_at=None)
    return {one.account_uuid: one for one in found}
