"""Promises that need attention: those due today that aren't kept, and broken ones on which nobody acted."""

from collections.abc import Iterable
from decimal import Decimal

from django.db.models import QuerySet
from django.urls import reverse

from portal.collections.models import Promise
from portal.collections.promises import DecidedPromise, broken_and_unanswered, decide_promises, due_today
from portal.registry.attention import Amount, Item, Items, Snoozed
from portal.ui import wording


def promises_due_today(snoozed: Snoozed) -> Items:
    """The promises due today: counted in the database, and decided when they are shown."""
    return Items(
        due_today().exclude(pk__in=snoozed.ids("promise:")).order_by("-pk"),
        _item,
        prepare=_decided,
        group="promised",
        name="promises due today",
        url=f"{reverse('collections:index')}?promise=due",
        add_up=_add_up,
    )


def _decided(due: list[Promise]) -> list[DecidedPromise]:
    decided = decide_promises((one.account_uuid for one in due), with_contacts=True)
    by_promise = {one.promise: one for of_account in decided.values() for one in of_account}
    return [by_promise[one] for one in due]


def broken_promises(snoozed: Snoozed) -> Items:
    """The broken promises on which nobody acted."""
    hidden = snoozed.ids("promise:")
    return Items(
        [one for one in broken_and_unanswered() if str(one.promise.pk) not in hidden],
        _item,
        group="broken",
        name="broken promises",
        url=f"{reverse('collections:index')}?promise=unanswered",
        add_up=lambda rows: _add_up(one.promise for one in rows),
    )


def _add_up(promises: QuerySet[Promise] | Iterable[Promise]) -> Amount:
    """Add up promises; of those in the database only the amounts are read."""
    if isinstance(promises, QuerySet):
        return Amount(sum(promises.order_by().values_list("amount", flat=True), Decimal(0)))
    return Amount(sum((one.amount for one in promises), Decimal(0)))


def _item(decided: DecidedPromise) -> Item:
    promise, amount = decided.promise, wording.money(decided.promise.amount) or ""
    kind = promise.contact.account_kind
    return Item(
        key=f"promise:{promise.pk}",
        state=decided.look,
        icon="calendar-event",
        amount=amount,
        badge=(decided.look, str(decided.state)),
        fact=f"Promise of {amount}",
        rest=decided.words,
        meta=f"{kind} {promise.account_uuid[:8]}, promised for {wording.day(promise.day)}",
        borrower_uuid=promise.contact.borrower_uuid,
        when=promise.day,
        rank=promise.amount,
        url=reverse("collections:contacts", args=[kind, promise.account_uuid]),
        verb="Open contacts",
    )
