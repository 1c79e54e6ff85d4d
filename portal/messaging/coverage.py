"""How complete the local copy is, day by day: what the service claims of a day, what is kept, what is missing."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Final

from django.core.cache import cache
from django.db.models import Max
from django.utils import timezone

from portal.clocks import match_recent
from portal.messaging.keeping import ONE_DAY, keep, kept_as, today
from portal.messaging.models import Day, Fingerprint, Message
from portal.messaging.sync import FiltersIgnored
from servicing import Client, Page
from servicing import Message as Told
from servicing.messages import WALK_LIMIT

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
    """One day of the strip, and its place in the drawing."""

    day: date
    claimed: int | None
    saved: int
    gone: int
    is_compared: bool
    """Whether exactly the saved messages were listed when the service last gave the whole day."""
    x: int
    height: int

    @property
    def missing(self) -> int:
        return max(0, (self.claimed or 0) - self.saved)

    @property
    def state(self) -> str:
        if self.missing:
            return "missing"
        return "complete" if self.is_compared and self.claimed == self.saved else "unchecked"

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
    def saved(self) -> int:
        return sum(bar.saved for bar in self.bars if bar.claimed is not None)

    @property
    def gone(self) -> int:
        return sum(bar.gone for bar in self.bars)

    @property
    def missing(self) -> int:
        return sum(bar.missing for bar in self.bars)

    @property
    def unchecked(self) -> int:
        return sum(bar.state == "unchecked" for bar in self.bars)

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
    """From what the service said of each day when it was asked last, and what is saved now."""
    days, is_cut = days_in_view(start, end)
    known = Day.objects.in_bulk(days)
    saved, gone = _saved(days[0], days[-1])
    highest = max([1, *(one.claimed for one in known.values()), *(one.number for one in saved.values())])
    bars = []
    for number, day in enumerate(days):
        one, here = known.get(day), saved.get(day, Fingerprint())
        most = one.claimed if one else here.number
        height = max(LEAST, most * HEIGHT // highest) if most or not one else 1
        bars.append(
            Bar(
                day,
                one.claimed if one else None,
                here.number,
                gone.get(day, 0),
                bool(one and one.agrees_with(here)),
                number * STEP,
                height,
            )
        )
    return Coverage(bars, is_cut)


def _saved(first: date, last: date) -> tuple[dict[date, Fingerprint], dict[date, int]]:
    """What is saved of each day, and how much of it is gone; counted again after a change, and after a while."""
    newest = Message.objects.aggregate(stored=Max("stored_at"), gone=Max("gone_at"))
    key = "messaging.saved." + "_".join(str(one) for one in (first, last, *newest.values())).replace(" ", "_")
    return cache.get_or_set(
        key,
        lambda: (Message.objects.fingerprints(first, last), Message.objects.gone_on(first, last)),
        COUNTED_AGAIN,
    ) or ({}, {})


def check(client: Client, start: date | None, end: date | None) -> int:
    """Compare each day in view with the service that was not compared just now; how many they were.

    One call a day: it has all messages of a day that fits on a page, and of another day their number.
    Raises :class:`FiltersIgnored` where the service does not read the day.
    """
    days, _ = days_in_view(start, end)
    fresh = Day.objects.filter(match_recent("checked_at", FRESH), day__in=days)
    asked = set(days) - set(fresh.values_list("day", flat=True))
    for day in sorted(asked, reverse=True):
        page = client.messages.list(start_date=day, end_date=day, limit=WALK_LIMIT)
        if page.filters_ignored:
            raise FiltersIgnored
        if page.pagination.total is not None:
            _note(day, page, page.pagination.total)
    return len(asked)


def _note(day: date, page: Page[Told], total: int) -> None:
    now = timezone.now()
    values: dict[str, Any] = {"claimed": total, "checked_at": now}
    if len(page) == total:
        keep(page.data, day=day)
        listed = Message.objects.filter(uuid__in=[kept_as(one.uuid) for one in page]).fingerprint()
        values |= {"listed": listed.number, "digest": listed.digest, "read_at": now}
    Day.objects.update_or_create(day=day, defaults=values)
