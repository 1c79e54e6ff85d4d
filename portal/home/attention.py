"""Everything that needs attention, most urgent first: the items of all areas without snoozed ones.

Everything is read from saved records; nothing calls the service.
"""

import functools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter

from django.core.cache import cache
from django.db.models import QuerySet

from portal.accounts.models import User
from portal.core.areas import ItemKind, areas
from portal.core.business_date import business_date
from portal.home.models import Snooze
from portal.ui.attention import (
    MAX_SHOWN,
    Amount,
    Item,
    ItemGroup,
    Items,
    Snoozed,
)

CACHE_SECONDS = 30


@functools.cache
def item_kinds() -> Mapping[str, ItemKind]:
    """The kinds of items by name, most urgent first; several apps may add to one."""
    kinds = sorted((kind for area in areas() for kind in area.attention), key=lambda kind: kind.order)
    by_name: dict[str, ItemKind] = {}
    for kind in kinds:
        known = by_name.get(kind.name)
        by_name[kind.name] = replace(known, sources=[*known.sources, *kind.sources]) if known else kind
    return by_name


@dataclass(frozen=True)
class Group:
    """The items of one kind, most urgent first, with their total."""

    name: str
    title: str
    sources: Sequence[ItemGroup]

    @cached_property
    def items(self) -> list[Item]:
        """The first items; if several kinds of accounts are mixed, the worst of all."""
        items = [item for source in self.sources for item in source.items]
        return sorted(items, key=attrgetter("rank"), reverse=True)[:MAX_SHOWN]

    @cached_property
    def total(self) -> int:
        return sum(source.total for source in self.sources)

    @cached_property
    def amount(self) -> Amount | None:
        """The sum; None for a group without amounts."""
        amounts = [source.amount for source in self.sources if source.amount]
        return sum(amounts, Amount()) if amounts else None

    @property
    def amount_words(self) -> str:
        return self.amount.words if self.amount else ""

    @property
    def links(self) -> list[ItemGroup]:
        """The lists behind items that aren't shown."""
        return [source for source in self.sources if source.url] if self.total > len(self.items) else []


@dataclass(frozen=True)
class Attention:
    """The whole list with the number of items in each group."""

    sources: Sequence[ItemGroup]
    user_id: int
    snoozed: Sequence[Snooze]

    @cached_property
    def groups(self) -> list[Group]:
        groups = [
            Group(kind.name, kind.title, [one for one in self.sources if one.group == kind.name])
            for kind in item_kinds().values()
        ]
        return [group for group in groups if group.sources]

    @property
    def items(self) -> list[Item]:
        return [item for group in self.groups for item in group.items]

    @property
    def total(self) -> int:
        return sum(source.total for source in self.sources)

    @property
    def mine(self) -> int:
        return sum(item.owner_id == self.user_id for item in self.items)

    @property
    def pills(self) -> list[tuple[str, str, int]]:
        """Name, label and count of each filter."""
        groups = [(one.name, one.title, one.total) for one in self.groups]
        return [("", "All", self.total), ("mine", "Mine", self.mine), *groups]

    @property
    def headline(self) -> list[str]:
        """The total number, the past due amount, and the returned payments."""
        found = {group.name: group for group in self.groups}
        parts = [
            f"{self.total:,} item{'' if self.total == 1 else 's'} need{'s' if self.total == 1 else ''} attention"
        ]
        if late := found.get("past_due"):
            known, unknown = late.amount or Amount()
            accounts = f"{late.total:,} account{'' if late.total == 1 else 's'}"
            words = f"{Amount(known).words} past due on {accounts}" if known else f"{accounts} past due"
            parts.append(f"{words} ({unknown:,} without a figure)" if unknown else words)
        if back := found.get("returned"):
            parts.append(f"{back.total:,} returned payment{'' if back.total == 1 else 's'}")
        return parts


def attention(user: User) -> Attention:
    """Collect everything that needs this person's attention."""
    snoozes = list(_snoozes())
    snoozed = Snoozed(one.key for one in snoozes)
    found = [items.load() for items in _items(snoozed, user)]
    groups = [group for group in found if group]
    numbers = Counter[str]()
    for group in groups:
        numbers[group.group] += group.total
    _save_numbers(user, numbers)
    return Attention(groups, user.pk, snoozes)


def count_waiting(user: User) -> dict[str, int]:
    """The number of items by area, for the navigation."""
    snoozed = Snoozed(_snoozes().values_list("key", flat=True))
    numbers = Counter[str]()
    for items in _items(snoozed, user):
        numbers[items.group] += items.total
    return _save_numbers(user, numbers)


def waiting_numbers(user: User) -> dict[str, int] | None:
    """The numbers counted in the last half minute; None if they have to be counted."""
    found: dict[str, int] | None = cache.get(_numbers_key(user))
    return found


def forget_numbers(user: User) -> None:
    """Have the numbers counted again, after this person acted."""
    cache.delete(_numbers_key(user))


def _save_numbers(user: User, by_group: Mapping[str, int]) -> dict[str, int]:
    numbers = {"home:index": sum(by_group.values()), "approvals:index": by_group.get("approvals", 0)}
    cache.set(_numbers_key(user), numbers, CACHE_SECONDS)
    return numbers


def _numbers_key(user: User) -> str:
    return f"home.waiting:{user.pk}"


def _snoozes() -> QuerySet[Snooze]:
    return Snooze.objects.filter(until__gt=business_date())


def _items(snoozed: Snoozed, user: User) -> Iterator[Items]:
    return (source(snoozed, user) for kind in item_kinds().values() for source in kind.sources)
