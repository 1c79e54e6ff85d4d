"""Compares stored times with a clock that may have been set back since.

A time impossibly far in the future was stored before the clock was set back, so nothing waits for it. Hides how far
the clocks of two machines may differ.
"""

import time
from datetime import datetime, timedelta

from django.core.cache import cache
from django.db import DatabaseError
from django.db.models import Q
from django.utils import timezone

from portal.runtime.cache import CacheUnavailable

SKEW = timedelta(seconds=5)
# Wall clock minus monotonic clock, when this process last compared them.
_offset_seconds = time.time() - time.monotonic()


def is_recent(moment: datetime | None, span: timedelta) -> bool:
    """Whether a moment is at most ``span`` ago and not in the future."""
    return moment is not None and -SKEW <= timezone.now() - moment <= span


def match_recent(field: str, span: timedelta) -> Q:
    """Match rows whose moment is recent."""
    now = timezone.now()
    return Q((f"{field}__gte", now - span), (f"{field}__lte", now + SKEW))


def match_future(field: str, longest: timedelta) -> Q:
    """Match rows whose moment is in the future, but no further than ``longest``, the furthest it is ever set."""
    now = timezone.now()
    return Q((f"{field}__gt", now), (f"{field}__lte", now + longest + SKEW))


def clear_cache_after_set_back() -> None:
    """Empty the cache after the clock was set back; its entries would live longer by as much."""
    global _offset_seconds
    offset = time.time() - time.monotonic()
    if offset < _offset_seconds - SKEW.total_seconds():
        try:
            cache.clear()
        except (DatabaseError, CacheUnavailable):
            return  # The cache, perhaps a table, accepts no writes now; the next request tries again.
    _offset_seconds = offset
