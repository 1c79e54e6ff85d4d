"""Sends jobs to the engine, and again when they were lost or are due.

Each step is one conditional update, so that only one of several workers takes it.
"""

from datetime import timedelta
from typing import Any, Protocol

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone

from portal.jobs import engine
from portal.jobs.kinds import JobKind, all_kinds, find_kind
from portal.jobs.models import RESEND_AFTER, Job, Schedule, Worker

State = Job.State


class Starter(Protocol):
    """Who starts a job, such as the audit trail's actor."""

    @property
    def id(self) -> int | None: ...

    @property
    def name(self) -> str: ...


def start_job(kind: JobKind, *, by: Starter | None = None, **arguments: Any) -> Job:
    """Start a job in the background; for a single kind, return the open one instead."""
    job = Job(name=kind.name, label=kind.label, key=kind.name if kind.single else "", arguments=arguments)
    job.actor_id, job.actor_name = (by.id, by.name[:300]) if by else (None, "system")
    try:
        with transaction.atomic():
            job.save(force_insert=True)
    except IntegrityError:
        joined = Job.objects.filter(key=job.key, state__in=Job.OPEN).first() if job.key else None
        if joined is None:
            raise
        return joined
    transaction.on_commit(lambda: send_job(job))
    return job


def send_job(job: Job) -> None:
    """Give a job to the engine; it is sent again later in case the engine loses it."""
    task_id = engine.deliver(job)
    Job.objects.filter(pk=job.pk).update(task_id=task_id, due_at=timezone.now() + RESEND_AFTER)


def send_due_jobs() -> None:
    """Send jobs that are due for another attempt or that the engine lost; one that fails stays due."""
    now = timezone.now()
    for job in Job.objects.filter(~Q(due_at__gt=now), state=State.WAITING):
        unchanged = Job.objects.filter(pk=job.pk, state=State.WAITING, due_at=job.due_at)
        with transaction.atomic():
            if unchanged.update(due_at=now + RESEND_AFTER) and not engine.has_undelivered(job):
                send_job(job)


def start_scheduled_jobs() -> None:
    """Start the scheduled jobs whose time has come."""
    now = timezone.now()
    for kind in all_kinds():
        if kind.interval is None:
            continue
        Schedule.objects.get_or_create(name=kind.name)
        is_due = ~Q(begun_at__gte=now - kind.interval)
        with transaction.atomic():
            if Schedule.objects.filter(is_due, name=kind.name).update(begun_at=now):
                start_job(kind)


def recover_lost_jobs() -> None:
    """Take jobs back from workers whose lease ran out, and give up jobs that lost too many workers."""
    now = timezone.now()
    is_leased, running = Q(lease_until__gt=now), Job.objects.filter(state=State.RUNNING)
    for job in running.filter(~is_leased):
        kind = find_kind(job.name)
        lost = running.filter(~is_leased, pk=job.pk, attempts=job.attempts)
        if job.cancel_asked_at:
            lost.update(state=State.CANCELLED, finished_at=now, lease_until=None)
        elif kind and job.attempts < kind.attempts:
            words = f"The worker was lost at attempt {job.attempts}. Resuming."
            lost.update(state=State.WAITING, due_at=now, lease_until=None, worker="", words=words)
        else:
            words = f"Stopped: the worker was lost {job.attempts} times."
            lost.update(state=State.FAILED, finished_at=now, lease_until=None, words=words)


def forget_old_jobs() -> int:
    """Delete jobs, workers and deliveries that ended long ago; return the number of jobs."""
    limit = timezone.now() - timedelta(days=settings.JOB_DAYS)
    Worker.objects.filter(beat_at__lt=limit).delete()
    engine.forget_deliveries(limit)
    return Job.objects.exclude(state__in=Job.OPEN).filter(created_at__lt=limit).delete()[0]
