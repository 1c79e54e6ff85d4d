"""The completeness of saved messages by day: how many the service reports, are saved, and are missing."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Final

from django.conf import settings
from django.core.cache import cache
from django.utils import timezone

from portal.messaging.models import Day, Fingerprint, Message
from portal.messaging.store import ONE_DAY, save_messages, service_today, storage_uuid
from portal.messaging.sync import FiltersIgnored
from portal.runtime.database import fetch_rows
from servicing import Client

USUAL_DAYS: Final = 30
MAX_DAYS: Final = 62
FRESH_FOR: Final = timedelta(minutes=5)
CACHE_SECONDS: Final = 30
BAR_HEIGHT: Final = 32
MIN_BAR_HEIGHT: Final = 3
BAR_STEP: Final = 100
TICKS: Final = 6
# Separately, each maximum of messages is one index step; together they would read every message.
_STATE: Final = (
    "SELECT (SELECT max(stored_at) FROM messaging_message),"
    " (SELECT max(gone_at) FROM messaging_message WHERE gone_at IS NOT NULL), max(checked_at), max(read_at)"
    " FROM messaging_day"
)


@dataclass(frozen=True)
class DayBar:
    """One day of the chart."""

    day: date
    claimed: int | None
    """The number that the service reports; None if it was not asked."""
    saved: int
    gone: int
    is_compared: bool
    """Whether the service listed exactly the saved messages when the whole day was last read."""
    x: int
    height: int

    @property
    def y(self) -> int:
        return BAR_HEIGHT - self.height

    @property
    def missing(self) -> int:
        return max(0, (self.claimed or 0) - self.saved)

    @property
    def state(self) -> str:
        if self.missing:
            return "missing"
        return "complete" if self.is_compared and self.claimed == self.saved else "unchecked"


@dataclass(frozen=True)
class Coverage:
    """The days shown."""

    bars: Sequence[DayBar]
    is_cut: bool
    """Whether the filters cover more days than are shown."""

    @property
    def width(self) -> int:
        return len(self.bars) * BAR_STEP

    @property
    def totals(self) -> dict[str, int]:
        return {
            "claimed": sum(bar.claimed or 0 for bar in self.bars),
            "saved": sum(bar.saved for bar in self.bars if bar.claimed is not None),
            "missing": sum(bar.missing for bar in self.bars),
            "gone": sum(bar.gone for bar in self.bars),
        }

    @property
    def is_unchecked(self) -> bool:
        return all(bar.state == "unchecked" for bar in self.bars)

    @property
    def ticks(self) -> Sequence[DayBar]:
        """The days that have a label."""
        return self.bars[:: max(1, len(self.bars) // TICKS)]


def days_in_view(start: date | None, end: date | None) -> tuple[list[date], bool]:
    """The days of a list, or the newest of many, and whether there are more."""
    last = end or max(service_today(), start or service_today())
    first = start or last - (USUAL_DAYS - 1) * ONE_DAY
    begin = max(first, last - (MAX_DAYS - 1) * ONE_DAY)
    return [begin + number * ONE_DAY for number in range((last - begin).days + 1)], begin > first


def messages_state() -> str:
    """A text that changes when messages are saved or a day is compared: a part of the keys of cached counts."""
    return "_".join(map(str, fetch_rows(_STATE)[0])).replace(" ", "_")


def coverage(start: date | None, end: date | None, state: str) -> Coverage:
    """Compare what the service last reported for each day with what is saved.

    Both are cached until the state changes, for 30 seconds at most: a message that comes back changes no state.
    """
    days, is_cut = days_in_view(start, end)
    first, last = days[0], days[-1]
    key = f"messaging.days.{first}.{last}.{state}"
    counts = cache.get(key)
    if not counts:
        saved, gone = Message.objects.fingerprints(first, last), Message.objects.gone_on(first, last)
        counts = Day.objects.in_bulk(days), saved, gone
        cache.set(key, counts, CACHE_SECONDS)
    reported, saved, gone = counts
    highest = max([1, *(one.claimed for one in reported.values()), *(one.number for one in saved.values())])
    bars = []
    for number, day in enumerate(days):
        report, local = reported.get(day), saved.get(day, Fingerprint())
        messages = report.claimed if report else local.number
        height = max(MIN_BAR_HEIGHT, messages * BAR_HEIGHT // highest) if messages or not report else 1
        claimed, is_compared = (report.claimed, report.agrees_with(local)) if report else (None, False)
        x = number * BAR_STEP
        bars.append(DayBar(day, claimed, local.number, gone.get(day, 0), is_compared, x, height))
    return Coverage(bars, is_cut)


def check_days(client: Client, start: date | None, end: date | None) -> int:
    """Compare each shown day with the service, unless that was just done; return how many were compared.

    One call a day gets all messages of a day that fit on a page, or else their number. Raises :class:`FiltersIgnored`
    if the service ignores the day.
    """
    days, _ = days_in_view(start, end)
    fresh = Day.objects.filter(checked_at__gte=timezone.now() - FRESH_FOR, day__in=days)
    stale = set(days) - set(fresh.values_list("day", flat=True))
    for day in sorted(stale, reverse=True):
        page = client.messages.list(start_date=day, end_date=day, limit=settings.SERVICING_PAGE_SIZE)
        if page.filters_ignored:
            raise FiltersIgnored
        total, now = page.pagination.total, timezone.now()
        values: dict[str, Any] = {"claimed": total, "checked_at": now}
        if len(page) == total:
            save_messages(page.data, day=day)
            listed = Message.objects.filter(uuid__in=[storage_uuid(one.uuid) for one in page]).fingerprint()
            values |= {"listed": listed.number, "digest": listed.digest, "read_at": now}
            values["unusable"] = len(page.unusable)
        if total is not None:
            Day.objects.update_or_create(day=day, defaults=values)
    return len(stale)
