"""The only module that knows Django's task interface, and hands it nothing but the id of a job.

On Django 6 the import becomes ``django.tasks``. Which engine carries the id is the setting ``TASK_BACKEND``; only what
``worker`` and ``forget_before`` do is special to the database engine.
"""

from datetime import datetime

from django_tasks import (
    DEFAULT_TASK_BACKEND_ALIAS,
    TaskResultStatus,
    default_task_backend,
    task,
    task_backends,
)
from django_tasks.exceptions import TaskResultDoesNotExist
from django_tasks_db import DatabaseBackend
from django_tasks_db.models import DBTaskResult

from portal.jobs import running
from portal.jobs.models import Job


@task()
def run(job_id: str) -> None:
    """What a worker of the engine calls."""
    running.run(job_id)


def send(job: Job) -> str:
    """Hand a job over; the engine's own id of it."""
    return str(run.enqueue(str(job.pk)).id)


def still_has(job: Job) -> bool:
    """Whether the engine has it still before it; an engine that cannot tell may be sent it again without harm."""
    if not (job.task_id and default_task_backend.supports_get_result):
        return False
    try:
        return bool(default_task_backend.get_result(job.task_id).status == TaskResultStatus.READY)
    except TaskResultDoesNotExist:
        return False


def is_database() -> bool:
    """Whether the engine is the portal's own database."""
    return isinstance(task_backends[DEFAULT_TASK_BACKEND_ALIAS], DatabaseBackend)


def forget_before(limit: datetime) -> None:
    """Delete the database engine's rows of old deliveries; it would keep those of killed workers for ever."""
    DBTaskResult.objects.filter(enqueued_at__lt=limit).exclude(status=TaskResultStatus.READY).delete()
