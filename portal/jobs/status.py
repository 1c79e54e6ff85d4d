"""What pages show of background work: workers, waiting jobs, and the schedule."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from django.db.models import Count, Min, QuerySet
from django.utils import timezone

from portal.jobs.kinds import JobKind, all_kinds
from portal.jobs.models import Job, Schedule, Worker, lease


@dataclass(frozen=True)
class JobsStatus:
    """The current state of background work."""

    workers: list[Worker]
    """The workers that are alive."""
    silent_since: datetime | None
    """When the last worker was last alive, if none is left; ``None`` if there never was one."""
    waiting: int
    oldest: datetime | None
    """When the oldest waiting job was started."""

    @property
    def is_working(self) -> bool:
        return bool(self.workers)

    @cached_property
    def running(self) -> list[Job]:
        return list(Job.objects.filter(state=Job.State.RUNNING))


def live_workers() -> QuerySet[Worker]:
    return Worker.objects.filter(beat_at__gte=timezone.now() - lease(), stopped_at=None)


def jobs_status(workers: Iterable[Worker] | None = None) -> JobsStatus:
    """Read the status of background work; pass ``workers`` if the live ones were just read."""
    alive = list(live_workers() if workers is None else workers)
    last = None if alive else Worker.objects.first()
    waiting = Job.objects.filter(state=Job.State.WAITING)
    return JobsStatus(
        workers=alive,
        silent_since=(last.stopped_at or last.beat_at) if last else None,
        **waiting.aggregate(waiting=Count("pk"), oldest=Min("created_at")),
    )


def scheduled_jobs() -> list[tuple[JobKind, Job | None, datetime | None]]:
    """List every kind that is or could be scheduled with its latest and its next run.

    There is no next run if a setting turned it off or it never ran.
    """
    started = dict(Schedule.objects.values_list("name", "begun_at"))
    kinds = sorted((kind for kind in all_kinds() if kind.every), key=lambda kind: kind.label)
    return [(kind, Job.latest(kind.name), _next_run(kind, started.get(kind.name))) for kind in kinds]


def _next_run(kind: JobKind, started_at: datetime | None) -> datetime | None:
    return started_at + kind.interval if started_at and kind.interval else None
