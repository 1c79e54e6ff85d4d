"""What pages tell of background work: who works, what waits, and what comes again by itself."""

from dataclasses import dataclass
from datetime import datetime

from portal.clocks import match_recent
from portal.jobs.kinds import Kind, kinds
from portal.jobs.models import Job, Schedule, Worker, lease


@dataclass(frozen=True)
class State:
    """Background work as it stands now."""

    workers: list[Worker]
    """Those that were heard of lately."""
    silent_since: datetime | None
    """When the last of them was heard of, where none is left; ``None`` too where there never was one."""
    running: list[Job]
    waiting: int
    oldest: datetime | None
    """Since when the oldest of what waits does."""

    @property
    def is_working(self) -> bool:
        """Whether anybody works."""
        return bool(self.workers)


def state() -> State:
    """The state of background work."""
    alive = list(Worker.objects.filter(match_recent("beat_at", lease()), stopped_at=None))
    last = None if alive else Worker.objects.first()
    waiting = Job.objects.filter(state=Job.State.WAITING).order_by("created_at")
    return State(
        workers=alive,
        silent_since=(last.stopped_at or last.beat_at) if last else None,
        running=list(Job.objects.filter(state=Job.State.RUNNING)),
        waiting=waiting.count(),
        oldest=waiting.values_list("created_at", flat=True).first(),
    )


@dataclass(frozen=True)
class Repeated:
    """A kind of job that the clock begins, and how it went the last time."""

    kind: Kind
    latest: Job | None
    next_at: datetime | None
    """``None`` where a setting turned it off, or where it never ran."""


def repeated() -> list[Repeated]:
    """Every kind that comes again by itself, or could."""
    begun = dict(Schedule.objects.values_list("name", "begun_at"))
    return [
        Repeated(kind, Job.latest(kind.name), _next(kind, begun.get(kind.name)))
        for kind in sorted(kinds(), key=lambda kind: kind.label)
        if kind.every
    ]


def _next(kind: Kind, begun_at: datetime | None) -> datetime | None:
    return begun_at + kind.interval if begun_at and kind.interval else None
