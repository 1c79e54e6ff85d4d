"""Promises that need attention: those due today that aren't kept, and broken ones on which nobody acted."""

from collections.abc import Iterable
from decimal import Decimal

from django.db.models import QuerySet
from django.urls import reverse

from portal.accounts.models import User
from portal.collections.models import Promise
from portal.collections.promises import broken_and_unanswered, due_today
from portal.ui import wording
from portal.ui.attention import Amount, Item, Items, Snoozed


def promises_due_today(snoozed: Snoozed, _user: User) -> Items:
    """The promises due today that aren't kept yet."""
    return Items(
        _shown(due_today(), snoozed).order_by("-pk"),
        _item,
        group="promised",
        name="promises due today",
        url=f"{reverse('collections:index')}?promise=due",
        add_up=_add_up,
    )


def broken_promises(snoozed: Snoozed, _user: User) -> Items:
    return Items(
        _shown(broken_and_unanswered(), snoozed).order_by("-day", "-pk"),
        _item,
        group="broken",
        name="broken promises",
        url=f"{reverse('collections:index')}?promise=unanswered",
        add_up=_add_up,
    )


def _shown(promises: QuerySet[Promise], snoozed: Snoozed) -> QuerySet[Promise]:
    return promises.exclude(pk__in=snoozed.ids("promise:")).select_related("contact")


def _add_up(promises: QuerySet[Promise] | Iterable[Promise]) -> Amount:
    """Add up promises; of those in the database only the amounts are read."""
    if isinstance(promises, QuerySet):
        return Amount(sum(promises.order_by().values_list("amount", flat=True), Decimal(0)))
    return Amount(sum((one.amount for one in promises), Decimal(0)))


def _item(promise: Promise) -> Item:
    amount, kind = wording.money(promise.amount) or "", promise.contact.account_kind
    return Item(
        key=f"promise:{promise.pk}",
        state=promise.look,
        icon="calendar-event",
        amount=amount,
        badge=(promise.look, promise.get_state_display()),
        fact=f"Promise to pay {amount}",
        rest=promise.words,
        meta=f"{kind} {promise.account_uuid[:8]}, promised for {wording.day(promise.day)}",
        borrower_uuid=promise.contact.borrower_uuid,
        when=promise.day,
        rank=promise.amount,
        url=reverse("collections:contacts", args=[kind, promise.account_uuid]),
        verb="Open contacts",
    )
