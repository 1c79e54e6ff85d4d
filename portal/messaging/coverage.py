"""How complete the local copy is, day by day: what the service claims of a day, what is kept, what is missing."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from django.core.cache import cache
from django.utils import timezone

from portal.clocks import match_recent
from portal.messaging.keeping import ONE_DAY, today
from portal.messaging.models import Day, kept_on, last_stored
from servicing import Client

USUAL: Final = 30
MOST: Final = 62
FRESH: Final = timedelta(minutes=5)
COUNTED_AGAIN: Final = 30
"""Seconds for which the numbers of days hold while nothing is stored."""
HEIGHT: Final = 32
LEAST: Final = 3
STEP: Final = 100


@dataclass(frozen=True)
class Bar:
    """One day of the strip, and where it stands in the drawing."""

    day: date
    claimed: int | None
    kept: int
    x: int
    height: int

    @property
    def missing(self) -> int:
        return max(0, (self.claimed or 0) - self.kept)

    @property
    def state(self) -> str:
        return "unchecked" if self.claimed is None else "missing" if self.missing else "complete"

    @property
    def y(self) -> int:
        return HEIGHT - self.height

    @property
    def middle(self) -> int:
        return self.x + STEP // 2


@dataclass(frozen=True)
class Coverage:
    """The days in view."""

    bars: Sequence[Bar]
    is_cut: bool
    """Whether more days are asked for than are drawn."""

    @property
    def width(self) -> int:
        return len(self.bars) * STEP

    @property
    def claimed(self) -> int:
        return sum(bar.claimed or 0 for bar in self.bars)

    @property
    def kept(self) -> int:
        return sum(bar.kept for bar in self.bars if bar.claimed is not None)

    @property
    def missing(self) -> int:
        return sum(bar.missing for bar in self.bars)

    @property
    def unchecked(self) -> int:
        return sum(bar.claimed is None for bar in self.bars)

    @property
    def ticks(self) -> list[Bar]:
        """The days that are named below the strip."""
        return list(self.bars[:: max(1, len(self.bars) // 6)])


def days_in_view(start: date | None, end: date | None) -> tuple[list[date], bool]:
    """The days of a list, the newest of them where they are many."""
    last = end or max(today(), start or today())
    first = start or last - (USUAL - 1) * ONE_DAY
    begin = max(first, last - (MOST - 1) * ONE_DAY)
    return [begin + number * ONE_DAY for number in range((last - begin).days + 1)], begin > first


def coverage(start: date | None, end: date | None) -> Coverage:
    """From what the service claimed when it was asked last, and what is kept now."""
    days, is_cut = days_in_view(start, end)
    claims = dict(Day.objects.filter(day__in=days).values_list("day", "claimed"))
    kept = _kept(days[0], days[-1])
    highest = max([1, *claims.values(), *kept.values()])
    bars = []
    for number, day in enumerate(days):
        claimed, here = claims.get(day), kept.get(day, 0)
        told = here if claimed is None else claimed
        height = max(LEAST, told * HEIGHT // highest) if told or claimed is None else 1
        bars.append(Bar(day, claimed, here, number * STEP, height))
    return Coverage(bars, is_cut)


def _kept(first: date, last: date) -> dict[date, int]:
    """How many are kept of each day; counted again when another one was stored, and after a while."""
    stored = last_stored()
    key = f"messaging.kept.{first}.{last}.{stored and stored.timestamp()}"
    return cache.get_or_set(key, lambda: kept_on(first, last), COUNTED_AGAIN) or {}


def check(client: Client, start: date | None, end: date | None) -> int:
    """Ask the service how many messages it has of each day in view that was not asked for just now."""
    days, _ = days_in_view(start, end)
    fresh = Day.objects.filter(match_recent("checked_at", FRESH), day__in=days)
    asked = set(days) - set(fresh.values_list("day", flat=True))
    for day in sorted(asked, reverse=True):
        total = client.messages.list(start_date=day, end_date=day, limit=1).pagination.total
        if total is not None:
            told = {"claimed": total, "checked_at": timezone.now()}
            Day.objects.update_or_create(day=day, defaults=told)
    return len(asked)
