"""Promises that need attention: those due today that aren't kept, and those broken since yesterday."""

from collections.abc import Iterable
from decimal import Decimal
from functools import cache

from django.db.models import Q
from django.urls import reverse

from portal.collections.models import Promise
from portal.collections.promises import (
    DecidedPromise,
    broken_since_yesterday,
    due_today,
    find_promises,
)
from portal.registry.attention import MAX_SHOWN, Amount, Item, Items, Snoozed
from portal.ui import wording
from servicing.promises import PromiseState


def promises_due_today(snoozed: Snoozed) -> Items:
    """The promises due today: counted in the database, and decided when they are shown."""
    due = due_today().exclude(pk__in=snoozed.ids("promise:")).order_by("-pk")

    @cache
    def shown() -> dict[int, DecidedPromise]:
        keys = list(due.values_list("pk", flat=True)[:MAX_SHOWN])
        return {one.promise.pk: one for one in find_promises(Q(pk__in=keys), list(PromiseState))}

    return Items(
        due,
        lambda promise: _item(shown()[promise.pk]),
        group="promised",
        name="promises due today",
        url=f"{reverse('collections:index')}?promise=due",
        add_up=_add_up,
    )


def broken_promises(snoozed: Snoozed) -> Items:
    """The promises broken yesterday or today, on Mondays since Friday."""
    hidden = snoozed.ids("promise:")
    return Items(
        [one for one in broken_since_yesterday() if str(one.promise.pk) not in hidden],
        _item,
        group="broken",
        name="broken promises",
        url=f"{reverse('collections:index')}?promise=new",
        add_up=lambda rows: _add_up(one.promise for one in rows),
    )


def _add_up(promises: Iterable[Promise]) -> Amount:
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
