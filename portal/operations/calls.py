"""Recent calls to the lending service, filtered by the query string, and their failures in groups.

Hides that addresses are shown as patterns with names instead of IDs, and that a page begins after the last call of the
page before it, so that no table of millions is counted.
"""

import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from django.core.cache import cache
from django.db.models import Count, Max, Q
from django.http import QueryDict
from django.utils import timezone

from portal.audit.models import RemoteCall
from portal.audit.service_health import FAILED_OUTCOMES
from portal.records.sources import BY_NAME, OPERATIONS
from portal.ui.keys import row_key

PAGE_SIZE = 25
METHODS = ["GET", "POST", "PUT"]
STATUSES = {"2": "2xx", "3": "3xx", "4": "4xx", "5": "5xx", "none": "No status"}
OUTCOMES = {
    "answered": "Responded",
    "confirmed": "Confirmed",
    "rejected": "Rejected",
    "forbidden": "Access denied",
    "unavailable": "No response",
    "protocol": "Unreadable response",
    "not_sent": "Not sent",
    "unknown": "Outcome unknown",
    "failed": "Any failure",
}
_ID_IN_PATH = re.compile(r"(?<=/)([a-z_]+)/(?=[^/]*\d)[\w-]{8,}(?=/|$)")


def find_calls(state: QueryDict) -> dict[str, Any]:
    """Find a page of calls that match a query string, newest first; without filters, the ones that failed."""
    chosen = {name: value for name in FILTERS if (value := _text(state.get(name, "")))}
    if not any(name in state for name in FILTERS):
        chosen = {"outcome": "failed"}
    # An invalid value matches nothing.
    calls = RemoteCall.objects.filter(*(FILTERS[name](value) for name, value in chosen.items()))
    if (key := row_key(_text(state.get("before", "")))) is not None:
        calls = calls.filter(pk__lt=key)
    rows = list(calls[: PAGE_SIZE + 1])
    return {
        "rows": rows[:PAGE_SIZE],
        "chosen": chosen,
        "older": rows[PAGE_SIZE - 1].pk if len(rows) > PAGE_SIZE else None,
        # Whether a filter under “More” is set.
        "has_more": not chosen.keys().isdisjoint(("method", "status", "slower")),
    }


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
    return Q(outcome__in=FAILED_OUTCOMES) if value == "failed" else Q(outcome=value)


FILTERS: dict[str, Callable[[str], Q]] = {
    "method": lambda value: Q(method=value),
    "call": lambda value: Q(operation=value),
    "status": _status,
    "outcome": _outcome,
    "slower": _slower,
    "by": lambda value: Q(actor_name__icontains=value),
    "reference": lambda value: Q(request_id__startswith=value),
}


def failures() -> list[dict[str, Any]]:
    """Group the failures of the last 24 hours, rejections included, by operation and kind, most frequent first.

    Each group has the error of its newest call.
    """
    failed = RemoteCall.objects.filter(outcome__in=[*FAILED_OUTCOMES, "rejected"])
    recent = failed.filter(at__gte=timezone.now() - timedelta(days=1))
    groups = recent.order_by().values("operation", "outcome", "status")
    counted = groups.annotate(count=Count("pk"), last=Max("at"), newest=Max("pk")).order_by("-count", "-last")
    rows = list(counted[:20])
    words = dict(RemoteCall.objects.filter(pk__in=[row["newest"] for row in rows]).values_list("pk", "error"))

    def why(row: Mapping[str, Any]) -> str:
        # Without a status the list says itself that nothing came back; the error ends with the reason.
        error = words.get(row["newest"], "")
        return error if row["status"] else error.rpartition(": ")[2]

    return [dict(row, words=why(row), label=_label(row["operation"])) for row in rows]


def _label(operation: str) -> str:
    return BY_NAME[operation].label if operation in BY_NAME else operation


def operation_paths() -> dict[str, str]:
    """The path of each operation from its last call, ``GET /v1/users/{user}/loan/{loan}``, else its name in words."""
    return cache.get_or_set("call-patterns", _operation_paths, 60) or {}


def _operation_paths() -> dict[str, str]:
    newest = {row: RemoteCall.objects.filter(operation=row.name).first() for row in OPERATIONS}
    return {
        row.name: f"{call.method} {path_pattern(call.path)}" if call else row.label
        for row, call in newest.items()
    }


def path_pattern(path: str) -> str:
    """Replace every ID in a path with a name."""
    return _ID_IN_PATH.sub(lambda found: f"{found[1]}/{{{found[1].removesuffix('s')}}}", path)


def _text(value: str) -> str:
    return value.replace("\0", "").strip()[:60]
