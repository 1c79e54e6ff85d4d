"""Items that need attention, as areas provide them to the home page.

An area has a module ``attention`` with one function for each kind of item. It takes what is snoozed and returns the
others, most urgent first.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import cached_property
from typing import Any, NamedTuple

from django.db.models import QuerySet

from portal.ui import wording

MAX_SHOWN = 25
"""How many items of one kind are shown."""


@dataclass(frozen=True, kw_only=True)
class Item:
    """One item: a fact, and one thing to do about it."""

    key: str
    """Identifies the fact for as long as it holds; snoozes refer to it."""
    state: str = "bad"
    icon: str = "alert-circle"
    fact: str
    rest: str = ""
    meta: str = ""
    amount: str = ""
    """The amount, for a line that begins with the borrower instead of the fact."""
    badge: tuple[str, str] | None = None
    """How long it has been past due: a state and words."""
    borrower_uuid: str = ""
    when: datetime | date | None = None
    rank: Decimal = Decimal(0)
    """The sort key within a group over all kinds of accounts, greatest first."""
    url: str
    verb: str
    owner_id: int | None = None

    @property
    def sentence(self) -> str:
        """The fact, as plain text."""
        return f"{self.fact} {self.rest}".strip()


class Amount(NamedTuple):
    """The sum of several items, and the number of unknown amounts."""

    known: Decimal = Decimal(0)
    unknown: int = 0

    def __add__(self, other: Any) -> "Amount":
        return Amount(self.known + other.known, self.unknown + other.unknown)

    @property
    def words(self) -> str:
        """Such as "$310.00, plus 2 without a figure"."""
        if self.unknown and not self.known:
            return "Not known"
        words = wording.money(self.known) or ""
        return f"{words}, plus {self.unknown:,} without a figure" if self.unknown else words


@dataclass(frozen=True, kw_only=True)
class ItemGroup:
    """The shown items of one kind, with the number and the sum of all of them.

    ``amount`` is None for items without amounts. A link lists all of them.
    """

    group: str
    name: str
    url: str
    items: list[Item]
    total: int
    amount: Amount | None


class Items:
    """The items of one kind: counted in the database, built when they are shown.

    ``prepare`` reads what the shown rows need, all at once.
    """

    def __init__(
        self,
        rows: QuerySet[Any] | Sequence[Any] = (),
        build: Callable[[Any], Item] = lambda item: item,
        *,
        prepare: Callable[[list[Any]], list[Any]] = lambda rows: rows,
        group: str = "",
        name: str = "",
        url: str = "",
        add_up: Callable[[Any], Amount] | None = None,
    ) -> None:
        self._rows, self._build, self._prepare, self._add_up = rows, build, prepare, add_up
        self.group, self.name, self.url = group, name, url

    @cached_property
    def _first(self) -> list[Any]:
        return list(self._rows[: MAX_SHOWN + 1])

    def load(self) -> ItemGroup | None:
        if not self._first:
            return None
        return ItemGroup(
            group=self.group,
            name=self.name,
            url=self.url,
            items=[self._build(row) for row in self._prepare(self._first[:MAX_SHOWN])],
            total=self.total,
            amount=self._add_up(self._first if self._has_all else self._rows) if self._add_up else None,
        )

    @cached_property
    def total(self) -> int:
        if isinstance(self._rows, Sequence):
            return len(self._rows)
        return len(self._first) if self._has_all else self._rows.count()

    @property
    def _has_all(self) -> bool:
        return "_first" in self.__dict__ and len(self._first) <= MAX_SHOWN


class Snoozed(frozenset[str]):
    """The keys of hidden items."""

    def ids(self, prefix: str) -> list[str]:
        return [key.removeprefix(prefix) for key in self if key.startswith(prefix)]

    def only(self, item: Item, group: str) -> Items:
        return Items([] if item.key in self else [item], group=group)
