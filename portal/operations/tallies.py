"""Counts what happens in this process, and adds it every few seconds to what all processes have counted.

Hides that nobody waits for a database in order to be counted, and that of a process that is killed a few seconds are
lost. Nothing is counted while nobody may read it (``METRICS_TOKEN``).
"""

import atexit
import logging
import threading
from collections import Counter

from django.conf import settings
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.db.models import F

from portal.operations.models import Tally

EVERY = 10
"""Seconds."""
ENDLESS = 2**31 - 1
SPANS = [50, 100, 250, 500, 1000, 2500, 5000, 10_000, ENDLESS]
REQUEST, CALL = "request", "call"

Key = tuple[str, str, str, int]
logger = logging.getLogger(__name__)
_lock = threading.Lock()
_counts: Counter[Key] = Counter()
_times: Counter[Key] = Counter()
_timer: threading.Timer | None = None


def count(kind: str, name: str, outcome: str, milliseconds: int) -> None:
    """One more of a kind that took so long."""
    if not settings.METRICS_TOKEN:
        return
    key = (kind, name[:100], outcome[:20], next(span for span in SPANS if milliseconds <= span))
    with _lock:
        _counts[key] += 1
        _times[key] += milliseconds
        _wait()


def waiting() -> int:
    """How much this process has counted that is not written yet."""
    with _lock:
        return sum(_counts.values())


def _wait() -> None:
    global _timer
    if _timer is None:
        _timer = threading.Timer(EVERY, _flush_and_leave)
        _timer.daemon = True
        _timer.start()


def _flush_and_leave() -> None:
    try:
        flush()
    finally:
        connection.close()


def flush() -> None:
    """Write what was counted; where the database does not answer it is kept for the next time."""
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
            for key in sorted(counts):  # In one order, so that two processes do not wait for each other.
                _add(key, counts[key], times[key])
    except DatabaseError:
        logger.warning("What was counted for the metrics could not be written; it is kept.")
        with _lock:
            _counts.update(counts)
            _times.update(times)
            _wait()


def _add(key: Key, count: int, milliseconds: int) -> None:
    fields = dict(zip(("kind", "name", "outcome", "span"), key, strict=True))
    more = {"count": F("count") + count, "milliseconds": F("milliseconds") + milliseconds}
    if Tally.objects.filter(**fields).update(**more):
        return
    try:
        with transaction.atomic():
            Tally.objects.create(**fields, count=count, milliseconds=milliseconds)
    except IntegrityError:  # Another process was faster.
        Tally.objects.filter(**fields).update(**more)


@atexit.register
def _flush_at_the_end() -> None:
    if _counts:
        flush()
