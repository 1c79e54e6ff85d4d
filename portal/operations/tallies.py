"""Counts requests and calls in this process, and adds the counts to a shared table every few seconds.

Hides that counting makes no request wait for the database, and that a killed process loses the last few seconds.
Without ``METRICS_TOKEN`` nothing is counted.
"""

import atexit
import logging
import threading
from collections import Counter

from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.db.models import F

from portal.operations.models import Tally

FLUSH_SECONDS = 10
UNLIMITED = 2**31 - 1
SPANS = [50, 100, 250, 500, 1000, 2500, 5000, 10_000, UNLIMITED]
REQUEST, CALL = "request", "call"

Key = tuple[str, str, str, int]
logger = logging.getLogger(__name__)
_lock = threading.Lock()
_counts: Counter[Key] = Counter()
_times: Counter[Key] = Counter()
_timer: threading.Timer | None = None


def count(kind: str, name: str, outcome: str, milliseconds: int) -> None:
    """Count one request or call with its duration."""
    if not settings.METRICS_TOKEN:
        return
    key = (kind, name[:100], outcome[:20], next(span for span in SPANS if milliseconds <= span))
    with _lock:
        _counts[key] += 1
        _times[key] += milliseconds
        _start_timer()


def count_unwritten() -> int:
    """The number of counts not written yet."""
    with _lock:
        return sum(_counts.values())


def _start_timer() -> None:
    global _timer
    if _timer is None:
        _timer = threading.Timer(FLUSH_SECONDS, _flush_and_close)
        _timer.daemon = True
        _timer.start()


def _flush_and_close() -> None:
    try:
        flush()
    finally:
        connection.close()


def flush() -> None:
    """Write the counts; if the database does not answer, keep them for the next time."""
    global _timer
    with _lock:
        counts, times = _counts.copy(), _times.copy()
        _counts.clear()
        _times.clear()
        if _timer:
            _timer.cancel()
        _timer = None
    try:
        with transaction.atomic():
            for key in sorted(counts):  # Sorted, so that two processes cannot deadlock.
                _add(key, counts[key], times[key])
    except DatabaseError:
        logger.warning("Metric counts could not be saved. They will be tried again.")
        with _lock:
            _counts.update(counts)
            _times.update(times)
            _start_timer()


def _add(key: Key, count: int, milliseconds: int) -> None:
    Tally.objects.update_or_create(
        **dict(zip(("kind", "name", "outcome", "span"), key, strict=True)),
        defaults={"count": F("count") + count, "milliseconds": F("milliseconds") + milliseconds},
        create_defaults={"count": count, "milliseconds": milliseconds},
    )


@atexit.register
def _flush_at_exit() -> None:
    if _counts:
        flush()
