"""Whether a stored moment is recent or still ahead, on a clock that may have been set back since it was stored.

A moment further in the future than it can be was written by the clock as it was before: nothing waits for it. Hides
how far the clocks of two machines may differ.
"""

import time
from datetime import datetime, timedelta

from django.core.cache import cache
from django.db import DatabaseError
from django.db.models import Q
from django.utils import timezone

SKEW = timedelta(seconds=5)
# How far the clock of the day was ahead of the one that nobody sets, when this process last looked.
_lead_seconds = time.time() - time.monotonic()


def is_recent(moment: datetime | None, span: timedelta) -> bool:
    """Whether a moment lies no longer than ``span`` before now, and not in the future."""
    return moment is not None and -SKEW <= timezone.now() - moment <= span


def match_recent(field: str, span: timedelta) -> Q:
    """The rows of which that holds."""
    now = timezone.now()
    return Q((f"{field}__gte", now - span), (f"{field}__lte", now + SKEW))


def match_ahead(field: str, longest: timedelta) -> Q:
    """The rows whose moment is still ahead, and no further than ``longest``, for which it is ever set."""
    now = timezone.now()
    return Q((f"{field}__gt", now), (f"{field}__lte", now + longest + SKEW))


def drop_cache_after_set_back() -> None:
    """Empty the cache once the clock was set back: its entries would outlive their time by as much."""
    global _lead_seconds
    lead = time.time() - time.monotonic()
    if lead < _lead_seconds - SKEW.total_seconds():
        try:
            cache.clear()
        except DatabaseError:
            return  # The cache is a table on PostgreSQL, and takes no write now: the next request tries again.
    _lead_seconds = lead
