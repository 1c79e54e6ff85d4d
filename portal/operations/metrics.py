"""The metrics page in Prometheus format.

Every process gives the same answer, from the database. Without the database, a process reports that and its own
metrics.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from django.db import DatabaseError
from django.db.models import Count, Max, QuerySet
from django.utils import timezone

from portal.audit.integrity import find_failed_check, last_check
from portal.audit.models import Entry, RemoteCall, WriteIntent
from portal.audit.service_health import current_outage
from portal.jobs.models import Job
from portal.jobs.status import jobs_status
from portal.messaging.models import Run
from portal.operations import readiness, tallies
from portal.operations.models import Tally

Samples = list[tuple[dict[str, str], float | int]]
# Help text, and a function that returns samples, one value, or None.
Metrics = dict[str, tuple[str, Callable[[], Samples | float | None]]]
_ESCAPED = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def lines() -> Iterator[str]:
    """Write the page line by line."""
    try:
        readiness.require_database()
        stored = list(_stored_metrics())
    except DatabaseError:
        stored = []
    yield from _each(_process_metrics(bool(stored)))
    yield from stored


def _stored_metrics() -> Iterator[str]:
    tallies.flush()
    yield from _histogram(
        "desk_request_duration_seconds", "Requests answered.", tallies.REQUEST, ("view", "status")
    )
    yield from _histogram(
        "desk_remote_call_duration_seconds",
        "Calls to the lending service.",
        tallies.CALL,
        ("operation", "outcome"),
    )
    yield from _each(METRICS)


def _each(metrics: Metrics) -> Iterator[str]:
    for name, (words, read) in metrics.items():
        yield from _head(name, "counter" if name.endswith("_total") else "gauge", words)
        found = read()
        samples = [({}, found)] if isinstance(found, int | float) else found or []
        yield from (_sample(name, labels, value) for labels, value in samples)


def _histogram(name: str, words: str, kind: str, labels: tuple[str, str]) -> Iterator[str]:
    yield from _head(name, "histogram", words)
    found: dict[tuple[str, str], dict[int, Tally]] = defaultdict(dict)
    for tally in Tally.objects.filter(kind=kind).order_by("name", "outcome"):
        found[tally.name, tally.outcome][tally.span] = tally
    for values, spans in found.items():
        named, count = dict(zip(labels, values, strict=True)), 0
        for span in tallies.SPANS:
            count += spans[span].count if span in spans else 0
            limit = "+Inf" if span == tallies.UNLIMITED else f"{span / 1000:g}"
            yield _sample(f"{name}_bucket", named | {"le": limit}, count)
        yield _sample(f"{name}_sum", named, sum(one.milliseconds for one in spans.values()) / 1000)
        yield _sample(f"{name}_count", named, count)


def _head(name: str, kind: str, words: str) -> Iterator[str]:
    yield f"# HELP {name} {words}"
    yield f"# TYPE {name} {kind}"


def _sample(name: str, labels: dict[str, str], value: float) -> str:
    text_labels = ",".join(f'{label}="{text.translate(_ESCAPED)}"' for label, text in labels.items())
    return f"{name}{{{text_labels}}} {value}" if text_labels else f"{name} {value}"


def _count_jobs() -> Samples:
    open_jobs = Job.objects.filter(state__in=Job.OPEN).values_list("name", "state").order_by("name", "state")
    return [({"job": name, "state": of}, count) for name, of, count in open_jobs.annotate(Count("pk"))]


def _count_failed_jobs() -> Samples:
    failed = Job.objects.filter(state=Job.State.FAILED).values_list("name").order_by("name")
    return [({"job": name}, count) for name, count in failed.annotate(Count("pk"))]


def _count_open_writes() -> Samples:
    open_ones = WriteIntent.objects.filter(state__in=WriteIntent.OPEN).values_list("state").order_by("state")
    counts = dict(open_ones.annotate(Count("pk")))
    return [({"state": str(of)}, counts.get(of, 0)) for of in WriteIntent.OPEN]


def _since(moment: datetime | None) -> float | None:
    """The seconds since a moment."""
    return max(0, round((timezone.now() - moment).total_seconds(), 3)) if moment else None


def _age(rows: QuerySet[Any], column: str = "at") -> float | None:
    """The seconds since the newest of these rows."""
    return _since(rows.values_list(column, flat=True).first())


def _is_unbroken() -> int | None:
    last = last_check()
    if find_failed_check(last):
        return 0
    return 1 if last else None


def _process_metrics(has_database: bool) -> Metrics:
    """The metrics that a process knows without the database."""
    up = "1 while the database responds; otherwise 0, without the figures that it holds."
    waiting = "Requests and calls counted by this process and not yet saved."
    return {
        "desk_database_up": (up, lambda: int(has_database)),
        "desk_counts_waiting": (waiting, tallies.count_unwritten),
    }


METRICS: Metrics = {
    "desk_workers": ("Workers running.", lambda: len(jobs_status().workers)),
    "desk_jobs": ("Background jobs waiting or running.", _count_jobs),
    "desk_jobs_failed": ("Failed background jobs on file.", _count_failed_jobs),
    "desk_job_wait_seconds": ("Seconds the oldest job has waited.", lambda: _since(jobs_status().oldest)),
    "desk_sync_age_seconds": (
        "Seconds since the last full message sync.",
        lambda: _age(Run.objects.filter(failure="", ended_at__isnull=False), "ended_at"),
    ),
    "desk_remote_answer_age_seconds": (
        "Seconds since the service last responded.",
        lambda: _age(RemoteCall.objects.filter(outcome__in=["answered", "confirmed"])),
    ),
    "desk_remote_left_alone": (
        "1 while calls are paused because the service isn’t responding, otherwise 0.",
        lambda: int(current_outage() is not None),
    ),
    # Entries are numbered without gaps, so the last number is the count.
    "desk_audit_entries_total": (
        "Entries in the audit trail.",
        lambda: Entry.objects.aggregate(last=Max("pk"))["last"] or 0,
    ),
    "desk_audit_unbroken": (
        "1 if the last audit check passed, 0 if it failed or couldn’t finish.",
        _is_unbroken,
    ),
    "desk_audit_check_age_seconds": (
        "Seconds since the last full audit check.",
        lambda: _age(Entry.objects.filter(action="audit.verify")),
    ),
    "desk_writes_open": ("Requests being sent, and those whose outcome is unknown.", _count_open_writes),
}
