"""The process of ``manage.py work``: runs jobs one after the other and starts what is due."""

import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from django.conf import settings
from django.db import Error, connection
from django.db.models import Q
from django.utils import timezone

from portal.jobs import queue
from portal.jobs.execution import Requeued, repeat_in_thread, run_job, stopping
from portal.jobs.kinds import all_chores
from portal.jobs.models import Job, Worker, lease

POLL_SECONDS = 0.5
"""How long a job waits for an idle worker, at most."""

logger = logging.getLogger(__name__)


def run_waiting_jobs() -> None:
    """Run each job once that waits, even if it is due later, or that its worker lost; oldest first."""
    run_chores()
    is_lost = Q(state=Job.State.RUNNING, due_at__lte=timezone.now())
    for one in list(Job.objects.filter(is_lost | Q(state=Job.State.WAITING)).order_by("created_at")):
        if job := queue.take(one):
            run_job(job)


def work() -> None:
    """Work until this process is asked to stop."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stop)
    with _heartbeat(), suppress(Requeued):
        while not stopping.is_set():
            try:
                if job := queue.take_job():
                    _run(job)
                    continue
            except Error:
                logger.exception("The worker couldn’t fetch jobs. Retrying.")
                connection.close()
            stopping.wait(POLL_SECONDS)


def _run(job: Job) -> None:
    """Run a job; a stop signal interrupts it after the grace period."""
    try:
        run_job(job)
    finally:
        signal.alarm(0)


def _stop(number: int, frame: FrameType | None) -> None:
    """Ask the running job to stop at its next step; a second signal or the end of the grace period interrupts it."""
    if stopping.is_set():
        _interrupt()
    stopping.set()
    signal.signal(signal.SIGALRM, _interrupt)
    signal.alarm(settings.JOB_GRACE_SECONDS)


def _interrupt(*_: object) -> None:
    raise Requeued


def run_chores() -> None:
    """Do the work that isn't a job, such as starting one when there is something to do. A failure stops no other."""
    for chore in all_chores():
        try:
            chore()
        except Exception:
            logger.exception("Part of the upkeep failed.")


@contextmanager
def _heartbeat() -> Iterator[None]:
    """Keep this worker's row alive, in a thread that also does the upkeep."""
    try:
        with repeat_in_thread(_beat, lease() / 6, name="clock", at_once=True):
            yield
    finally:
        try:
            Worker.objects.filter(pk=queue.WORKER_ID).update(stopped_at=timezone.now())
        except Error:
            logger.exception("The worker’s stop couldn’t be recorded.")


def _beat() -> None:
    try:
        Worker.objects.update_or_create(pk=queue.WORKER_ID, defaults={"beat_at": timezone.now()})
        run_chores()
        queue.start_scheduled_jobs()
    except Exception:  # The next round follows in any case.
        logger.exception("A scheduled run was missed.")
