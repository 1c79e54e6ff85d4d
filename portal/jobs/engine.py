"""The only module that knows Django's task interface and the database engine behind it (django-tasks-db).

The engine carries only a job's ID, and ``TASK_BACKEND`` names it. Only ``DatabaseWorker`` and ``forget_deliveries``
need the database engine. They use parts that are not public, so its version is pinned and
``tests/portal/jobs/test_engine.py`` checks them. On Django 6 ``django_tasks`` becomes ``django.tasks``.
"""

import logging
import signal
import sys
import time
from datetime import datetime
from types import FrameType
from typing import Any

from django.conf import settings
from django.db import Error, connection
from django_tasks import (
    DEFAULT_TASK_BACKEND_ALIAS,
    DEFAULT_TASK_QUEUE_NAME,
    TaskResultStatus,
    default_task_backend,
    task,
    task_backends,
)
from django_tasks.exceptions import InvalidTaskBackendError, TaskResultDoesNotExist
from django_tasks_db import DatabaseBackend
from django_tasks_db.management.commands import db_worker
from django_tasks_db.models import DBTaskResult

from portal.jobs import execution
from portal.jobs.models import Job
from portal.runtime.environment import stop

POLL_SECONDS = 0.5
"""How long a job waits for an idle worker, at most."""

logger = logging.getLogger(__name__)


try:
    task_backends[DEFAULT_TASK_BACKEND_ALIAS]
except (InvalidTaskBackendError, TypeError):
    stop(f"TASK_BACKEND isn’t a django-tasks backend: {settings.TASKS['default']['BACKEND']!r}.")


@task()
def run(job_id: str) -> None:
    """Run a delivered job; the engine's worker calls this."""
    execution.run_job(job_id)


def deliver(job: Job) -> str:
    """Give a job to the engine; return the engine's own ID for it."""
    return str(run.enqueue(str(job.pk)).id)


def has_undelivered(job: Job) -> bool:
    """Whether the engine still has to deliver it. If it can't tell, delivering again does no harm."""
    if not (job.task_id and default_task_backend.supports_get_result):
        return False
    try:
        return bool(default_task_backend.get_result(job.task_id).status == TaskResultStatus.READY)
    except TaskResultDoesNotExist:
        return False


def is_database() -> bool:
    """Whether the engine is the portal's own database."""
    return isinstance(task_backends[DEFAULT_TASK_BACKEND_ALIAS], DatabaseBackend)


def forget_deliveries(limit: datetime) -> None:
    """Delete the database engine's rows of old deliveries; it would keep those of killed workers forever."""
    DBTaskResult.objects.filter(enqueued_at__lt=limit).exclude(status=TaskResultStatus.READY).delete()


class DatabaseWorker(db_worker.Worker):
    """The engine's loop. On a stop signal it gives back the running job, at its next step or after the grace period."""

    def __init__(self) -> None:
        super().__init__(
            queue_names=[DEFAULT_TASK_QUEUE_NAME],
            excluded_queue_names=[],
            interval=POLL_SECONDS,
            batch=False,
            backend_name=DEFAULT_TASK_BACKEND_ALIAS,
            startup_delay=False,
            max_tasks=None,
            worker_id=execution.worker_id()[:64],
        )

    def run(self) -> None:
        """Restart the engine's loop after a database error, which ends it."""
        self.configure_signals()
        while self.running:
            try:
                super().run()
            except Error:
                logger.exception("The worker couldn’t fetch jobs. Retrying.")
                connection.close()
                time.sleep(POLL_SECONDS)

    def run_task(self, db_task_result: Any) -> None:
        """Run a delivery; cancel the alarm if the job ends within the grace period."""
        try:
            super().run_task(db_task_result)
        finally:
            signal.alarm(0)

    def shutdown(self, signum: int, frame: FrameType | None) -> None:
        """Ask the running job to stop; a second signal or the end of the grace period interrupts it."""
        if not self.running:
            self.interrupt()
            return
        self.running = False
        if not self.running_task:
            sys.exit(0)
        execution.stopping.set()
        signal.signal(signal.SIGALRM, self.interrupt)
        signal.alarm(settings.JOB_GRACE_SECONDS)

    def interrupt(self, *_: Any) -> None:
        """Interrupt the running job, which is given back."""
        if self.running_task:
            raise execution.GivenBack
