"""Starts jobs, and lets workers take them: several workers may try, and one conditional update wins.

``Job.due_at`` is when a waiting job may start, and when the lease of a running one ends. So a job that is due is either
waiting or lost by its worker.
"""

import hashlib
from datetime import timedelta
from typing import Any, Protocol
from uuid import uuid4

from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Coalesce
from django.utils import timezone

from portal.jobs.kinds import JobKind, all_kinds, find_kind
from portal.jobs.models import Job, Schedule, Worker, lease

State = Job.State
WORKER_ID = uuid4().hex
"""This process in the claims of jobs."""
MAX_CANDIDATES = 20
FINISHED_JOB_DAYS = 30
"""How long finished jobs are shown."""


class Starter(Protocol):
    """Who starts a job, such as the audit trail's actor."""

    @property
    def id(self) -> int | None: ...

    @property
    def name(self) -> str: ...


def start_job(kind: JobKind, *, by: Starter | None = None, about: str = "", **arguments: Any) -> Job:
    """Start a job in the background; for a single kind, or one about the same ID, return the open one instead."""
    job = Job(name=kind.name, label=kind.label, key=_key(kind, about), arguments=arguments)
    job.actor_id, job.actor_name = (by.id, by.name[:300]) if by else (None, "system")
    try:
        with transaction.atomic():
            job.save(force_insert=True)
    except IntegrityError:
        joined = Job.objects.filter(key=job.key, state__in=Job.OPEN).first() if job.key else None
        if joined is None:
            raise
        return joined
    return job


def open_job(kind: JobKind, about: str = "") -> Job | None:
    """The open job of a single kind, or of a kind about this ID."""
    return Job.objects.filter(key=_key(kind, about), state__in=Job.OPEN).first()


def _key(kind: JobKind, about: str) -> str:
    """What only one open job has; empty where there may be several."""
    if about:
        return f"{kind.name}:{hashlib.sha256(about.encode()).hexdigest()[:16]}"
    return kind.name if kind.single else ""


def take_job() -> Job | None:
    """Take the job that has been due longest; None if none is due."""
    now = timezone.now()
    due = Job.objects.filter(state__in=Job.OPEN, due_at__lte=now).order_by("due_at", "created_at")
    return next(filter(None, map(take, due[:MAX_CANDIDATES])), None)


def take(job: Job) -> Job | None:
    """Take a job as it was read; None if another worker was faster, or if it ends because its worker was lost."""
    now, words = timezone.now(), job.words
    if job.state == State.RUNNING:
        if _ends_without_its_worker(job):
            return None
        words = f"The worker was lost at attempt {job.attempts}. Resuming."
    taken = _unchanged(job).update(
        state=State.RUNNING,
        attempts=job.attempts + 1,
        worker=WORKER_ID,
        due_at=now + lease(),
        started_at=Coalesce("started_at", now),
        words=words,
    )
    return Job.objects.get(pk=job.pk) if taken else None


def _unchanged(job: Job) -> "QuerySet[Job]":
    """The row, as long as nobody changed it since it was read."""
    return Job.objects.filter(pk=job.pk, state=job.state, attempts=job.attempts, due_at=job.due_at)


def _ends_without_its_worker(job: Job) -> bool:
    """End a job whose worker was lost, if it was canceled or lost too many workers."""
    now, kind = timezone.now(), find_kind(job.name)
    if job.cancel_asked_at:
        _unchanged(job).update(state=State.CANCELLED, finished_at=now)
    elif kind is None or job.attempts >= kind.attempts:
        words = f"Stopped: the worker was lost {job.attempts} times."
        _unchanged(job).update(state=State.FAILED, finished_at=now, words=words)
    else:
        return False
    return True


def start_scheduled_jobs() -> None:
    now = timezone.now()
    for kind in all_kinds():
        if kind.interval is None:
            continue
        Schedule.objects.get_or_create(name=kind.name)
        is_due = ~Q(begun_at__gte=now - kind.interval)
        with transaction.atomic():
            if Schedule.objects.filter(is_due, name=kind.name).update(begun_at=now):
                start_job(kind)


def forget_old_jobs() -> int:
    """Delete jobs and workers that ended long ago; return the number of jobs."""
    limit = timezone.now() - timedelta(days=FINISHED_JOB_DAYS)
    Worker.objects.filter(beat_at__lt=limit).delete()
    return Job.objects.exclude(state__in=Job.OPEN).filter(created_at__lt=limit).delete()[0]
