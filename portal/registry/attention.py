"""What needs attention, as areas offer it to the home page.

An area has a module ``attention`` with one function for each kind of item. It reads at most ``limit`` records, the
most urgent first.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from django.db.models import QuerySet


@dataclass(frozen=True, kw_only=True)
class Item:
    """One line: a fact, and one thing to do about it."""

    key: str
    """Identifies the fact for as long as it holds; snoozes refer to it."""
    group: str = ""
    state: str = "bad"
    icon: str = "alert-circle"
    fact: str
    rest: str = ""
    meta: str = ""
    borrower_uuid: str = ""
    when: datetime | date | None = None
    rank: Decimal = Decimal(0)
    """Orders what is past due over all kinds of accounts, the greatest first."""
    url: str
    verb: str
    owner_id: int | None = None

    @property
    def sentence(self) -> str:
        """The fact, as plain text."""
        return f"{self.fact} {self.rest}".strip()


@dataclass(frozen=True)
class Items:
    """The first items of one kind, how many there are in all, and where all of them are listed."""

    items: Sequence[Item] = ()
    total: int = 0
    name: str = ""
    url: str = ""

    @property
    def left_out(self) -> int:
        return max(0, self.total - len(self.items))


def only(item: Item) -> Items:
    """Items of which there is at most one."""
    return Items([item], 1)


def items_of(
    rows: QuerySet[Any], limit: int, build: Callable[[Any], Item | None], name: str = "", url: str = ""
) -> Items:
    """The items of the first rows; ``build`` gives none for a row that needs no attention after all."""
    first = list(rows[:limit])
    items = [item for item in map(build, first) if item]
    return Items(items, rows.count() if len(first) == limit else len(items), name, url)
