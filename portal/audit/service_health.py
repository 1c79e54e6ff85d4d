"""The lending service's health, by groups of calls and in a few words, and the circuit breaker.

Hides that all processes share one breaker, that after several tries without an answer one try is allowed every few
seconds, and that its answer ends the pause for everyone.
"""

import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from django.core.cache import cache
from django.db.models import Case, Count, F, Max, Min, Q, QuerySet, Value, When
from django.utils import timezone

from portal.audit.models import Outage, RemoteCall
from portal.core.database import release_connection
from portal.records.sources import GROUPS, OPERATIONS
from portal.ui import wording

logger = logging.getLogger(__name__)

# --- Circuit breaker ---

MAX_UNANSWERED_TRIES = 6
"""As many as two calls make with all their tries."""
PAUSE = timedelta(seconds=5)
_ROW = 1


class CircuitBreaker:
    """The client's gate. Each thread makes one try at a time."""

    def __init__(self) -> None:
        self._before = threading.local()

    def allows_request(self) -> bool:
        """Whether a try is allowed: always while the service answers, else once per pause."""
        try:
            return self._allows_request()
        finally:
            release_connection()

    def _allows_request(self) -> bool:
        self._before.outage = Outage.objects.filter(pk=_ROW).first()
        if self._before.outage is None or self._before.outage.tries < MAX_UNANSWERED_TRIES:
            return True
        now = timezone.now()
        return bool(Outage.objects.exclude(ask_again_at__gt=now).update(ask_again_at=now + PAUSE))

    def record_result(self, *, answered: bool) -> None:
        """Count a try without an answer; an answer ends the outage."""
        if not answered:
            _count_unanswered_try()
        elif self._before.outage and Outage.objects.all().delete()[0]:
            logger.info("The lending service is responding again.")


def current_outage() -> Outage | None:
    """The outage during which calls are paused; ``None`` while calls are made as usual."""
    return next((one for one in Outage.objects.all() if one.tries >= MAX_UNANSWERED_TRIES), None)


def _count_unanswered_try() -> None:
    now = timezone.now()
    Outage.objects.get_or_create(pk=_ROW, defaults={"since": now, "ask_again_at": now})
    Outage.objects.filter(pk=_ROW).update(tries=F("tries") + 1, ask_again_at=now + PAUSE)
    if Outage.objects.filter(pk=_ROW, tries=MAX_UNANSWERED_TRIES).exists():
        logger.warning("The lending service didn’t respond to %d calls in a row.", MAX_UNANSWERED_TRIES)


# --- Health ---

UNKNOWN_GROUP = "Other"
# A rejection is an answer, so the service works. Refused credentials count as no answer.
FAILED_OUTCOMES = {"unavailable", "unknown", "not_sent", "protocol", "forbidden"}
MAX_CALLS = 5000
# Every page shows the words, so they are cached; a few seconds of age go unnoticed.
CACHE_SECONDS = 5


@dataclass
class Health:
    """One group of calls over the last day."""

    name: str
    calls: int = 0
    failures: int = 0
    failures_last_hour: int = 0
    last_success: datetime | None = None
    last_failure: datetime | None = None
    failing_since: datetime | None = None
    """The first failure after the last success."""
    durations: list[int] = field(default_factory=list)
    """How long each call took, in order: read only where that is shown."""

    @property
    def median(self) -> int | None:
        return self._percentile(50)

    @property
    def p95(self) -> int | None:
        return self._percentile(95)

    def _percentile(self, share: int) -> int | None:
        """The time within which this share of the calls was answered."""
        ordered = self.durations
        return ordered[min(len(ordered) - 1, len(ordered) * share // 100)] if ordered else None

    @property
    def state(self) -> str:
        if not self.calls:
            return "neutral"
        if self.failing_since:
            return "bad"
        return "warn" if self.failures_last_hour else "ok"


def measure_health() -> list[Health]:
    """Measure each group from its calls of the last day, added up by the database."""
    has_failed, hour_ago = Q(outcome__in=FAILED_OUTCOMES), timezone.now() - timedelta(hours=1)
    calls = _recent_calls()
    rows = calls.values_list("group").annotate(
        calls=Count("pk"),
        failures=Count("pk", filter=has_failed),
        last_hour=Count("pk", filter=has_failed & Q(at__gte=hour_ago)),
        last_success=Max("at", filter=~has_failed),
        last_failure=Max("at", filter=has_failed),
    )
    found = {name: Health(name, *counts) for name, *counts in rows}
    groups = [found.get(name) or Health(name) for name in GROUPS]
    if UNKNOWN_GROUP in found:
        groups.append(found[UNKNOWN_GROUP])
    for group in groups:
        if group.last_failure and not (group.last_success and group.last_success >= group.last_failure):
            failures = calls.filter(has_failed, group=group.name)
            later = failures.filter(at__gt=group.last_success) if group.last_success else failures
            group.failing_since = later.aggregate(first=Min("at"))["first"]
    return groups


def with_durations(groups: Sequence[Health]) -> Sequence[Health]:
    """The same groups with the durations of their calls, in one statement for all."""
    durations: dict[str, list[int]] = {}
    for name, duration in _recent_calls().order_by("duration_ms").values_list("group", "duration_ms"):
        durations.setdefault(name, []).append(duration)
    return [replace(group, durations=durations.get(group.name, [])) for group in groups]


def _recent_calls() -> QuerySet[Any]:
    """The calls of the last day with their group, as far as they are counted: the table holds months."""
    newest = RemoteCall.objects.aggregate(newest=Max("pk", default=0))["newest"]
    recent = RemoteCall.objects.filter(pk__gt=newest - MAX_CALLS, at__gte=timezone.now() - timedelta(days=1))
    group_of_each = (When(operation=row.name, then=Value(row.group)) for row in OPERATIONS)
    return recent.annotate(group=Case(*group_of_each, default=Value(UNKNOWN_GROUP))).order_by()


def cached_health() -> list[Health]:
    return cache.get_or_set("health", measure_health, CACHE_SECONDS) or []


def forget_health() -> None:
    """Clear the cache, because a call just failed, or succeeded after failures."""
    cache.delete_many(["health", f"health:{timezone.get_current_timezone_name()}"])


def summarize(groups: Sequence[Health]) -> tuple[str, str] | None:
    """State and sentence over all groups; ``None`` without calls."""
    if down := current_outage():
        return "bad", f"No response since {wording.clock(down.since)}"
    asked = [group for group in groups if group.calls]
    failing = [group for group in asked if group.failing_since]
    if not asked:
        return None
    if not failing:
        return "ok", "All systems responding"
    since = wording.clock(min(group.failing_since for group in failing if group.failing_since))
    if len(failing) == len(asked):
        return "bad", f"No response since {since}"
    names = failing[0].name if len(failing) == 1 else f"{len(failing)} of {len(asked)} groups"
    return "warn", f"{names} failing since {since}"


def header_status() -> tuple[str, str] | None:
    """State and sentence for the header of every page: an outage at once, anything else a few seconds old."""
    if current_outage():
        return summarize(())
    zone = timezone.get_current_timezone_name()
    words: tuple[str, str] | None = cache.get_or_set(
        f"health:{zone}", lambda: summarize(cached_health()), CACHE_SECONDS
    )
    return words
