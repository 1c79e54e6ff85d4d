"""The business date: the one "today" of every figure, whatever time zone the viewer uses.

Hides where it comes from: the clock in ``BUSINESS_TIME_ZONE``, or in a demo the sandbox, whose days can be advanced.
"""

import json
import urllib.request
from datetime import date, datetime
from zoneinfo import ZoneInfo

from django.conf import settings
from django.core.cache import cache

CACHE_KEY = "business-date"
CACHE_SECONDS = 2
TIMEOUT_SECONDS = 5
RETRY_SECONDS = 10


def business_date() -> date:
    return _sandbox_date() if settings.BUSINESS_DATE_FROM == "sandbox" else _local_date()


def business_date_at(moment: datetime) -> date:
    """The business date at an earlier moment: today's, less the days that have passed since on the clock."""
    day = _local_date(moment)
    if settings.BUSINESS_DATE_FROM != "sandbox":
        return day
    return business_date() - (_local_date() - day)


def business_date_of_service(moment: datetime) -> date:
    """The business date at a moment on the service's clock, which a demo's sandbox advances."""
    return _local_date(moment)


def _local_date(moment: datetime | None = None) -> date:
    # The sandbox's day changes at midnight of its own zone.
    on_sandbox = settings.BUSINESS_DATE_FROM == "sandbox"
    zone = ZoneInfo(settings.SERVICING_TIME_ZONE if on_sandbox else settings.BUSINESS_TIME_ZONE)
    return (moment.astimezone(zone) if moment else datetime.now(zone)).date()


def _sandbox_date() -> date:
    """The sandbox's date, cached briefly; the last known one while the sandbox doesn't answer."""
    if found := cache.get(CACHE_KEY):
        return date.fromisoformat(found)
    try:
        with urllib.request.urlopen(  # noqa: S310 - the address of the service, set by the operator
            f"{settings.SERVICING_URL}/_sandbox/date", timeout=TIMEOUT_SECONDS
        ) as answer:
            today = date.fromisoformat(json.load(answer)["date"])
    except (OSError, ValueError, KeyError, TypeError):
        last = cache.get(f"{CACHE_KEY}.last")
        cache.set(CACHE_KEY, last, RETRY_SECONDS)  # Each figure of a page would wait for it again.
        return date.fromisoformat(last) if last else _local_date()
    cache.set(CACHE_KEY, today.isoformat(), CACHE_SECONDS)
    cache.set(f"{CACHE_KEY}.last", today.isoformat(), None)
    return today
