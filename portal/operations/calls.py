"""Recent calls of the lending service, narrowed by what the query string says, and their failures in groups.

Hides that an address is shown by its pattern, with a name in the place of every identifier, and that a page of calls is
found by the last call of the page before it: nobody counts a table of millions.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.core.cache import cache
from django.db.models import Count, Max, Q, QuerySet
from django.http import QueryDict
from django.utils import timezone

from portal.audit.health import FAILED, GROUPS
from portal.audit.models import RemoteCall
from portal.ui.keys import key_in

PAGE = 25
DAY = timedelta(days=1)
OPERATIONS = [operation for operations in GROUPS.values() for operation in operations] + ["documents.fetch"]
METHODS = ["GET", "POST", "PUT"]
STATUSES = {
    "2": "2xx",
    "3": "3xx",
    "4": "4xx",
    "5": "5xx",
    "none": "No status",
}
OUTCOMES = {
    "answered": "Answered",
    "confirmed": "Confirmed",
    "rejected": "Rejected",
    "forbidden": "Access refused",
    "unavailable": "No answer",
    "protocol": "Unreadable answer",
    "not_sent": "Not sent",
    "unknown": "Outcome unknown",
    "failed": "Any failure",
}
_IDENTIFIER = re.compile(r"(?<=/)([a-z_]+)/(?=[^/]*\d)[\w-]{8,}(?=/|$)")


@dataclass(frozen=True)
class Calls:
    """A page of calls, newest first."""

    rows: list[RemoteCall]
    chosen: dict[str, str]
    older: int | None
    """The call below which the next page begins."""

    @property
    def is_filtered(self) -> bool:
        """Whether anything narrows it."""
        return bool(self.chosen)


def found(state: QueryDict) -> Calls:
    """The calls that a query string asks for."""
    chosen = {name: value for name in FILTERS if (value := _text(state.get(name, "")))}
    calls = narrowed(chosen)
    before = _text(state.get("before", ""))
    if (key := key_in(before)) is not None:
        calls = calls.filter(pk__lt=key)
    rows = list(calls[: PAGE + 1])
    return Calls(rows[:PAGE], chosen, rows[PAGE - 1].pk if len(rows) > PAGE else None)


def narrowed(chosen: dict[str, str]) -> QuerySet[RemoteCall]:
    """The calls to which all of the chosen filters apply; one that cannot be understood finds nothing."""
    condition = Q()
    for name, value in chosen.items():
        condition &= FILTERS[name](value)
    return RemoteCall.objects.filter(condition)


def _status(value: str) -> Q:
    if value == "none":
        return Q(status__isnull=True)
    if not value.isdecimal() or len(value) > 3:
        return Q(pk__in=[])
    width = 10 ** (3 - len(value))
    return Q(status__gte=int(value) * width, status__lt=(int(value) + 1) * width)


def _slower(value: str) -> Q:
    return Q(duration_ms__gte=int(value)) if value.isdecimal() and len(value) < 10 else Q(pk__in=[])


def _outcome(value: str) -> Q:
    return Q(outcome__in=FAILED) if value == "failed" else Q(outcome=value)


FILTERS: dict[str, Callable[[str], Q]] = {
    "method": lambda value: Q(method=value),
    "call": lambda value: Q(operation=value),
    "status": _status,
    "outcome": _outcome,
    "slower": _slower,
    "by": lambda value: Q(actor_name__icontains=value),
    "reference": lambda value: Q(request_id__startswith=value),
}


@dataclass(frozen=True)
class Failure:
    """One way in which one operation failed over the last day."""

    operation: str
    outcome: str
    status: int | None
    count: int
    last: datetime
    words: str
    """What the newest of them said."""

    @property
    def query(self) -> str:
        """The filters that list them."""
        return f"?call={self.operation}&outcome={self.outcome}&status={self.status or 'none'}#calls"


def failures() -> list[Failure]:
    """The failures of the last day by kind and operation, the most frequent first; a refusal is one too."""
    recent = RemoteCall.objects.filter(at__gte=timezone.now() - DAY, outcome__in=[*FAILED, "rejected"])
    groups = recent.order_by().values("operation", "outcome", "status")
    counted = groups.annotate(count=Count("pk"), last=Max("at"), newest=Max("pk")).order_by("-count", "-last")
    rows = list(counted[:20])
    words = dict(RemoteCall.objects.filter(pk__in=[row["newest"] for row in rows]).values_list("pk", "error"))
    return [
        Failure(
            operation=row["operation"],
            outcome=row["outcome"],
            status=row["status"],
            count=row["count"],
            last=row["last"],
            words=words.get(row["newest"], ""),
        )
        for row in rows
    ]


def patterns() -> dict[str, str]:
    """The address of each operation as its last call showed it: ``GET /v1/users/{user}/loan/{loan}``."""
    return cache.get_or_set("call-patterns", _patterns, 60) or {}


def _patterns() -> dict[str, str]:
    newest = {operation: RemoteCall.objects.filter(operation=operation).first() for operation in OPERATIONS}
    return {
        operation: f"{call.method} {pattern(call.path)}" if call else "" for operation, call in newest.items()
    }


def pattern(path: str) -> str:
    """A path with a name in the place of every identifier."""
    return _IDENTIFIER.sub(lambda found: f"{found[1]}/{{{found[1].removesuffix('s')}}}", path)


def _text(value: str) -> str:
    return value.replace("\0", "").strip()[:60]
