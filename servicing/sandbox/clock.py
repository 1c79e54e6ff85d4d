"""The service's calendar: its time zone, and days that pass on demand. Hides where the offset is stored."""

from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from servicing.sandbox.store import Store

SERVICE_ZONE = ZoneInfo("America/Los_Angeles")
"""The time zone of the service's dates, date filters and age limit."""

_DAYS_AHEAD = "days_ahead"


class Clock:
    """The service's date: the real one or a fixed ``today``, plus the days advanced."""

    def __init__(self, store: Store, today: date | None = None) -> None:
        self._store = store
        self._today = today

    def today(self) -> date:
        """The service's business date."""
        return self.now().date()

    def now(self) -> datetime:
        """The service's time, aware, in its time zone."""
        now = datetime.now(SERVICE_ZONE)
        if self._today is not None:
            now = datetime.combine(self._today, time(now.hour, now.minute, now.second), SERVICE_ZONE)
        return now + timedelta(days=self._store.setting(_DAYS_AHEAD))

    def pass_days(self, days: int) -> None:
        """Move the business date forward, or backward with a negative number."""
        self._store.save_setting(_DAYS_AHEAD, self._store.setting(_DAYS_AHEAD) + days)


def stamp(moment: datetime, zone: str = "US/Pacific") -> str:
    """A timestamp as the interface writes it, with the zone's name at the end; ``zone=""`` omits it."""
    return f"{moment:%Y-%m-%d %H:%M:%S} {zone}".strip()
