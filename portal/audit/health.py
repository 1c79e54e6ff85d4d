"""How the lending service answers, told from the calls that were made: by groups of calls, and in a few words."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.core.cache import cache
from django.utils import timezone

from portal.audit.breaker import outage
from portal.audit.models import RemoteCall
from portal.ui import wording

GROUPS = {
    "Users": ["borrowers.create_commercial", "borrowers.update", "borrowers.update_key_person"],
    "Applications": ["applications.submit", "applications.get_for_line"],
    "Loans": ["loans.get"],
    "Statements": ["credit_lines.statement"],
    "Repayments": ["repayments.of_loan", "repayments.of_line"],
    "Messages": ["messages.list"],
}
_GROUP_OF = {operation: name for name, operations in GROUPS.items() for operation in operations}
# A refusal is an answer: the service is well. But who is refused as a stranger gets no answer at all.
FAILED = {"unavailable", "unknown", "not_sent", "protocol", "forbidden"}
CALLS = 5000
# Every page shows the words; nobody notices that they are so many seconds old.
KEPT = 5


@dataclass
class Health:
    """One group of calls over the last day."""

    name: str
    last_success: datetime | None = None
    last_failure: datetime | None = None
    failing_since: datetime | None = None
    """The first failure after the last success."""
    failures: int = 0
    failures_last_hour: int = 0
    durations: list[int] = field(default_factory=list)

    @property
    def calls(self) -> int:
        return len(self.durations)

    @property
    def median(self) -> int | None:
        return self._percentile(50)

    @property
    def p95(self) -> int | None:
        return self._percentile(95)

    def _percentile(self, share: int) -> int | None:
        """The time within which so many of a hundred calls were answered."""
        ordered = sorted(self.durations)
        return ordered[min(len(ordered) - 1, len(ordered) * share // 100)] if ordered else None

    @property
    def state(self) -> str:
        if not self.calls:
            return "neutral"
        if self.failing_since:
            return "bad"
        return "warn" if self.failures_last_hour else "ok"


def health() -> list[Health]:
    """The state of each group from its calls of the last day."""
    now = timezone.now()
    found = {name: Health(name) for name in GROUPS}
    calls = RemoteCall.objects.filter(at__gte=now - timedelta(days=1)).order_by("-id")
    rows = calls.values_list("operation", "at", "outcome", "duration_ms")[:CALLS]
    for operation, at, outcome, duration in rows:
        if operation not in _GROUP_OF:
            continue
        group = found[_GROUP_OF[operation]]
        group.durations.append(duration)
        if outcome in FAILED:
            group.failures += 1
            group.failures_last_hour += at >= now - timedelta(hours=1)
            group.last_failure = group.last_failure or at
            group.failing_since = group.failing_since if group.last_success else at
        else:
            group.last_success = group.last_success or at
    return list(found.values())


def lately() -> list[Health]:
    """The same from a few seconds ago."""
    return cache.get_or_set("health", health, KEPT) or []


def in_words(groups: Sequence[Health]) -> tuple[str, str] | None:
    """State and sentence over all groups; ``None`` while nothing was asked."""
    if down := outage():
        return "bad", f"Not answering since {wording.clock(down.since)}"
    asked = [group for group in groups if group.calls]
    failing = [group for group in asked if group.failing_since]
    if not asked:
        return None
    if not failing:
        return "ok", "All answering"
    since = wording.clock(min(group.failing_since for group in failing if group.failing_since))
    if len(failing) == len(asked):
        return "bad", f"Not answering since {since}"
    names = failing[0].name if len(failing) == 1 else f"{len(failing)} of {len(asked)} groups"
    return "warn", f"{names} failing since {since}"


def header() -> tuple[str, str] | None:
    """The same for the header of every page, from a few seconds ago; that the service is away, from now."""
    if outage():
        return in_words(())
    zone = timezone.get_current_timezone_name()
    words: tuple[str, str] | None = cache.get_or_set(f"health:{zone}", lambda: in_words(lately()), KEPT)
    return words
