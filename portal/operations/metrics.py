"""What monitoring asks for, as Prometheus reads it. Every process gives the same answer: it stands in the database.

While that is away a process says so, and what it knows of itself.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime

from django.db import DatabaseError
from django.db.models import Count, Max
from django.utils import timezone

from portal import cache
from portal.audit.breaker import outage
from portal.audit.models import Entry, RemoteCall, WriteIntent
from portal.jobs.models import Job
from portal.jobs.state import state
from portal.messaging.models import Run
from portal.operations import readiness, tallies
from portal.operations.models import Tally

Samples = Iterable[tuple[dict[str, str], float | int]]
# Its kind, what it tells, and where that is from.
Metrics = dict[str, tuple[str, str, Callable[[], Samples]]]
_ESCAPED = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def lines() -> Iterator[str]:
    """The page."""
    try:
        readiness.require_database()
        kept = list(_kept())
    except DatabaseError:
        kept = []
    yield from _each(_own(bool(kept)))
    yield from kept


def _kept() -> Iterator[str]:
    tallies.flush()
    yield from _histogram(
        "desk_request_duration_seconds", "Requests answered.", tallies.REQUEST, ("view", "status")
    )
    yield from _histogram(
        "desk_remote_call_duration_seconds",
        "Calls of the lending service.",
        tallies.CALL,
        ("operation", "outcome"),
    )
    yield from _each(METRICS)


def _each(metrics: Metrics) -> Iterator[str]:
    for name, (kind, words, samples) in metrics.items():
        yield from _head(name, kind, words)
        yield from (_sample(name, labels, value) for labels, value in samples())


def _histogram(name: str, words: str, kind: str, labels: tuple[str, str]) -> Iterator[str]:
    yield from _head(name, "histogram", words)
    found: dict[tuple[str, str], dict[int, Tally]] = defaultdict(dict)
    for tally in Tally.objects.filter(kind=kind).order_by("name", "outcome"):
        found[tally.name, tally.outcome][tally.span] = tally
    for values, spans in found.items():
        named, count = dict(zip(labels, values, strict=True)), 0
        for span in tallies.SPANS:
            count += spans[span].count if span in spans else 0
            limit = "+Inf" if span == tallies.ENDLESS else f"{span / 1000:g}"
            yield _sample(f"{name}_bucket", named | {"le": limit}, count)
        yield _sample(f"{name}_sum", named, sum(one.milliseconds for one in spans.values()) / 1000)
        yield _sample(f"{name}_count", named, count)


def _head(name: str, kind: str, words: str) -> Iterator[str]:
    yield f"# HELP {name} {words}"
    yield f"# TYPE {name} {kind}"


def _sample(name: str, labels: dict[str, str], value: float) -> str:
    told = ",".join(f'{label}="{text.translate(_ESCAPED)}"' for label, text in labels.items())
    return f"{name}{{{told}}} {value}" if told else f"{name} {value}"


def _jobs() -> Samples:
    open_ones = Job.objects.filter(state__in=Job.OPEN).values_list("name", "state").order_by("name", "state")
    return [({"job": name, "state": of}, count) for name, of, count in open_ones.annotate(Count("pk"))]


def _failed_jobs() -> Samples:
    failed = Job.objects.filter(state=Job.State.FAILED).values_list("name").order_by("name")
    return [({"job": name}, count) for name, count in failed.annotate(Count("pk"))]


def _writes() -> Samples:
    open_ones = WriteIntent.objects.filter(state__in=WriteIntent.OPEN).values_list("state").order_by("state")
    counts = dict(open_ones.annotate(Count("pk")))
    return [({"state": str(of)}, counts.get(of, 0)) for of in WriteIntent.OPEN]


def _entries() -> Samples:
    """They are numbered without gaps, so the last one's number counts them."""
    return [({}, Entry.objects.aggregate(last=Max("pk"))["last"] or 0)]


def _since(moment: Callable[[], datetime | None]) -> Callable[[], Samples]:
    """The seconds since a moment; no sample where it never came."""

    def samples() -> Samples:
        at = moment()
        return [({}, max(0, round((timezone.now() - at).total_seconds(), 3)))] if at else []

    return samples


def _last_sync() -> datetime | None:
    whole = Run.objects.filter(failure="", ended_at__isnull=False)
    return whole.values_list("ended_at", flat=True).first()


def _last_check() -> datetime | None:
    return Entry.objects.filter(action="audit.verify").values_list("at", flat=True).first()


def _last_checkpoint() -> datetime | None:
    return Entry.objects.filter(action="audit.checkpoint").values_list("at", flat=True).first()


def _unbroken() -> Samples:
    checked = Entry.objects.filter(action="audit.verify").first()
    return [({}, int(checked.result != "broken"))] if checked else []


def _last_answer() -> datetime | None:
    answered = RemoteCall.objects.filter(outcome__in=["answered", "confirmed"])
    return answered.values_list("at", flat=True).first()


def _own(has_database: bool) -> Metrics:
    """What a process knows by itself."""
    return {
        "desk_database_up": (
            "gauge",
            "1 while the database answers; else 0, and what stands in it is left out.",
            lambda: [({}, int(has_database))],
        ),
        "desk_counts_waiting": (
            "gauge",
            "Requests and calls that this process has counted and not written yet.",
            lambda: [({}, tallies.waiting())],
        ),
    }


METRICS: Metrics = {
    # Here, for the cache may be a table of the database.
    "desk_cache_up": (
        "gauge",
        "1 while the cache answers, else 0.",
        lambda: [({}, int(cache.is_answering()))],
    ),
    "desk_workers": ("gauge", "Workers heard of lately.", lambda: [({}, len(state().workers))]),
    "desk_jobs": ("gauge", "Background jobs that wait or run.", _jobs),
    "desk_jobs_failed": ("gauge", "Background jobs that failed and are still kept.", _failed_jobs),
    "desk_job_wait_seconds": ("gauge", "How long the oldest job waits.", _since(lambda: state().oldest)),
    "desk_sync_age_seconds": ("gauge", "Since the messages were last fetched whole.", _since(_last_sync)),
    "desk_remote_answer_age_seconds": ("gauge", "Since the service last answered.", _since(_last_answer)),
    "desk_remote_left_alone": (
        "gauge",
        "1 while the service is hardly asked because it does not answer, else 0.",
        lambda: [({}, int(outage() is not None))],
    ),
    "desk_audit_entries_total": ("counter", "Entries of the audit trail.", _entries),
    "desk_audit_unbroken": ("gauge", "1 if the last whole check of the trail held, else 0.", _unbroken),
    "desk_audit_check_age_seconds": ("gauge", "Since the trail was last checked whole.", _since(_last_check)),
    "desk_audit_checkpoint_age_seconds": (
        "gauge",
        "Since the end of the trail was last signed.",
        _since(_last_checkpoint),
    ),
    "desk_writes_open": ("gauge", "Writes under way, and those whose outcome is unknown.", _writes),
}
