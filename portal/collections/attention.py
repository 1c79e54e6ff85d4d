"""Promises that need attention: those due today that aren't kept, and those broken since yesterday."""

from collections.abc import Sequence

from django.urls import reverse

from portal.collections.promises import DecidedPromise, broken_since_yesterday, due_today, promised_amount
from portal.registry.attention import Amount, Item, Items, Snoozed
from portal.ui import wording


def promises_due_today(snoozed: Snoozed) -> Items:
    """The promises due today."""
    return _items(snoozed, due_today(), "promised", "promises due today", "due")


def broken_promises(snoozed: Snoozed) -> Items:
    """The promises broken yesterday or today, on Mondays since Friday."""
    return _items(snoozed, broken_since_yesterday(), "broken", "broken promises", "new")


def _items(snoozed: Snoozed, found: Sequence[DecidedPromise], group: str, name: str, choice: str) -> Items:
    hidden = snoozed.ids("promise:")
    return Items(
        [one for one in found if str(one.promise.pk) not in hidden],
        _item,
        group=group,
        name=name,
        url=f"{reverse('collections:index')}?promise={choice}",
        add_up=lambda rows: Amount(promised_amount(rows)),
    )


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
