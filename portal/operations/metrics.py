"""The metrics for Prometheus: gauges that are read from the database at each scrape.

Every process gives the same answer. Without the database, a process only reports that it is down.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.db import DatabaseError
from django.db.models import Count, QuerySet
from django.utils import timezone
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from portal.audit.integrity import find_failed_check, last_check
from portal.audit.models import Entry, RemoteCall, WriteIntent
from portal.audit.service_health import current_outage
from portal.jobs.models import Job
from portal.jobs.status import jobs_status
from portal.messaging.models import Run
from portal.operations import readiness


class GaugeCollector(Collector):
    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield whether the database responds, and then what it holds."""
        try:
            readiness.require_database()
            stored = list(_stored_gauges())
        except DatabaseError:
            stored = []
        up = "1 while the database responds; otherwise 0, without the figures that it holds."
        yield GaugeMetricFamily("desk_database_up", up, value=int(bool(stored)))
        yield from stored


registry = CollectorRegistry()
registry.register(GaugeCollector())


def _stored_gauges() -> Iterator[GaugeMetricFamily]:
    # A gauge without a value is listed without a sample.
    status = jobs_status()
    yield GaugeMetricFamily("desk_workers", "Workers running.", value=len(status.workers))
    yield _jobs()
    yield _failed_jobs()
    yield GaugeMetricFamily(
        "desk_job_wait_seconds", "Seconds the oldest job has waited.", value=_seconds_since(status.oldest)
    )
    yield GaugeMetricFamily(
        "desk_sync_age_seconds",
        "Seconds since the last full message sync.",
        value=_age(Run.objects.filter(failure="", ended_at__isnull=False), "ended_at"),
    )
    yield GaugeMetricFamily(
        "desk_remote_answer_age_seconds",
        "Seconds since the service last responded.",
        value=_age(RemoteCall.objects.filter(outcome__in=["answered", "confirmed"])),
    )
    yield GaugeMetricFamily(
        "desk_remote_left_alone",
        "1 while calls are paused because the service isn’t responding, otherwise 0.",
        value=int(current_outage() is not None),
    )
    yield _open_writes()
    yield GaugeMetricFamily(
        "desk_audit_unbroken",
        "1 if the last audit check passed, 0 if it failed or couldn’t finish.",
        value=_has_passed_audit_check(),
    )
    yield GaugeMetricFamily(
        "desk_audit_check_age_seconds",
        "Seconds since the last full audit check.",
        value=_age(Entry.objects.filter(action="audit.verify")),
    )
    yield GaugeMetricFamily(
        "desk_backup_age_seconds",
        "Seconds since manage.py backup last finished.",
        value=_age(Entry.objects.filter(action="operations.backup")),
    )


def _jobs() -> GaugeMetricFamily:
    gauge = GaugeMetricFamily("desk_jobs", "Background jobs waiting or running.", labels=["job", "state"])
    open_jobs = Job.objects.filter(state__in=Job.OPEN).values_list("name", "state").order_by("name", "state")
    for name, state, count in open_jobs.annotate(Count("pk")):
        gauge.add_metric([name, state], count)
    return gauge


def _failed_jobs() -> GaugeMetricFamily:
    gauge = GaugeMetricFamily("desk_jobs_failed", "Failed background jobs on file.", labels=["job"])
    failed_jobs = Job.objects.filter(state=Job.State.FAILED).values_list("name").order_by("name")
    for name, count in failed_jobs.annotate(Count("pk")):
        gauge.add_metric([name], count)
    return gauge


def _open_writes() -> GaugeMetricFamily:
    words = "Requests being sent, and those whose outcome is unknown."
    gauge = GaugeMetricFamily("desk_writes_open", words, labels=["state"])
    open_writes = (
        WriteIntent.objects.filter(state__in=WriteIntent.OPEN).values_list("state").order_by("state")
    )
    counts = dict(open_writes.annotate(Count("pk")))
    for state in WriteIntent.OPEN:
        gauge.add_metric([str(state)], counts.get(state, 0))
    return gauge


def _has_passed_audit_check() -> int | None:
    last = last_check()
    if find_failed_check(last):
        return 0
    return 1 if last else None


def _age(rows: QuerySet[Any], column: str = "at") -> float | None:
    """The seconds since the newest of these rows."""
    return _seconds_since(rows.values_list(column, flat=True).first())


def _seconds_since(moment: datetime | None) -> float | None:
    return max(0, round((timezone.now() - moment).total_seconds(), 3)) if moment else None
