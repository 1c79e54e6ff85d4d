"""How a job gets into the engine: started by somebody, sent once it is committed."""

from typing import Any, Protocol

from django.db import IntegrityError, transaction
from django.utils import timezone

from portal.jobs import engine
from portal.jobs.kinds import Kind
from portal.jobs.models import LOOK_AGAIN, Job


class Somebody(Protocol):
    """Who starts a job; the audit's actor is one."""

    @property
    def id(self) -> int | None: ...

    @property
    def name(self) -> str: ...


def start(kind: Kind, *, by: Somebody | None = None, **arguments: Any) -> Job:
    """Begin a job in the background, or join the open one where there may be only one."""
    job = Job(name=kind.name, label=kind.label, key=kind.name if kind.single else "", arguments=arguments)
    job.actor_id, job.actor_name = (by.id, by.name[:300]) if by else (None, "system")
    try:
        with transaction.atomic():
            job.save(force_insert=True)
    except IntegrityError:
        open_one = Job.objects.filter(key=job.key, state__in=Job.OPEN).first() if job.key else None
        if open_one is None:
            raise
        return open_one
    transaction.on_commit(lambda: send(job))
    return job


def send(job: Job) -> None:
    """Hand a job to the engine; it is looked for again after a while, should the engine lose it."""
    task_id = engine.send(job)
    Job.objects.filter(pk=job.pk).update(task_id=task_id, due_at=timezone.now() + LOOK_AGAIN)
