"""The completeness of saved messages by day: how many the service reports, are saved and are missing, and when each
message was last compared.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.db.models import Count, Q
from django.utils import timezone

from portal.messaging.models import Day, Message
from portal.messaging.store import ONE_DAY, save_messages, service_today, storage_uuid
from portal.messaging.sync import FiltersIgnored
from servicing import Client

USUAL_DAYS: Final = 30
MAX_DAYS: Final = 62
FRESH_FOR: Final = timedelta(minutes=5)
BAR_HEIGHT: Final = 32
MIN_BAR_HEIGHT: Final = 3
BAR_STEP: Final = 100
TICKS: Final = 6


@dataclass(frozen=True)
class DayBar:
    day: date
    claimed: int | None
    """The number that the service reports; None if it was not asked."""
    saved: int
    gone: int
    compared_at: datetime | None
    """When each message of the day was last compared."""
    compared: int | None
    """How many messages the service listed then."""
    unusable: int
    """How many of them have no usable ID, so they can't be saved."""
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
        """A day is complete as of its last comparison, unless other messages were reported or saved since."""
        if self.missing:
            return "missing"
        return "complete" if self.claimed == self.saved == self.compared else "unchecked"


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
        """Whether the service was not asked about any of the days."""
        return all(bar.claimed is None for bar in self.bars)

    @property
    def number_compared(self) -> int:
        return sum(bar.compared_at is not None for bar in self.bars)

    @property
    def compared_since(self) -> datetime | None:
        """When the first of the compared days was last compared message by message."""
        return min((bar.compared_at for bar in self.bars if bar.compared_at), default=None)

    @property
    def ticks(self) -> Sequence[DayBar]:
        return self.bars[:: max(1, len(self.bars) // TICKS)]


def days_in_view(start: date | None, end: date | None) -> tuple[list[date], bool]:
    """The days of a list, or the newest of many, and whether there are more."""
    last = end or max(service_today(), start or service_today())
    first = start or last - (USUAL_DAYS - 1) * ONE_DAY
    begin = max(first, last - (MAX_DAYS - 1) * ONE_DAY)
    return [begin + number * ONE_DAY for number in range((last - begin).days + 1)], begin > first


def coverage(start: date | None, end: date | None) -> Coverage:
    """Compare what the service last reported for each day with what is saved."""
    days, is_cut = days_in_view(start, end)
    reported = Day.objects.in_bulk(days)
    messages = Message.objects.order_by().filter(day__range=(days[0], days[-1]))
    counted = messages.values("day").annotate(
        saved=Count("pk", filter=Q(is_placed=True, gone_at=None)), gone=Count("gone_at")
    )
    counts = {row["day"]: row for row in counted}
    highest = max(
        [1, *(one.claimed for one in reported.values()), *(row["saved"] for row in counts.values())]
    )
    bars = []
    for number, day in enumerate(days):
        report, row = reported.get(day), counts.get(day, {"saved": 0, "gone": 0})
        messages_of_day = report.claimed if report else row["saved"]
        height = (
            max(MIN_BAR_HEIGHT, messages_of_day * BAR_HEIGHT // highest)
            if messages_of_day or not report
            else 1
        )
        bars.append(
            DayBar(
                day=day,
                claimed=report.claimed if report else None,
                saved=row["saved"],
                gone=row["gone"],
                compared_at=report.compared_at if report else None,
                compared=report.listed if report and not report.unusable else None,
                unusable=report.unusable if report else 0,
                x=number * BAR_STEP,
                height=height,
            )
        )
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
            uuids = {storage_uuid(message.uuid) for message in page}
            values |= {"unusable": len(page.unusable)}
            # A message that is missing once may only have moved while the page was read.
            if not Message.objects.of_days(day, day).exclude(uuid__in=uuids).exists():
                values |= {"listed": len(uuids), "compared_at": now}
        if total is not None:
            Day.objects.update_or_create(day=day, defaults=values)
    return len(stale)
