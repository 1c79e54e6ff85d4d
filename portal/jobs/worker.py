"""The process of ``manage.py work``: runs jobs one after the other and starts what is due.

With the database engine it runs that engine's loop. Another engine has its own workers; this process then only sends
it lost and scheduled jobs.
"""

import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import Error
from django.utils import timezone

from portal.jobs import engine, queue
from portal.jobs.execution import repeat_in_thread, run_job, stopping, worker_id
from portal.jobs.kinds import all_chores
from portal.jobs.models import Job, Worker, lease

logger = logging.getLogger(__name__)


def run_waiting_jobs() -> None:
    """Run all waiting jobs in this process, oldest first; the engine's later deliveries do nothing."""
    run_chores()
    queue.recover_lost_jobs()
    waiting = Job.objects.filter(state=Job.State.WAITING).order_by("created_at")
    for job_id in list(waiting.values_list("pk", flat=True)):
        run_job(str(job_id))


def work() -> None:
    """Work until this process is asked to stop."""
    with _heartbeat():
        if engine.is_database():
            engine.DatabaseWorker().run()
        else:
            signal.signal(signal.SIGTERM, lambda *_: stopping.set())
            stopping.wait()


def run_chores() -> None:
    """Do the work that isn't a job, such as this host's. A failure stops neither the others nor jobs."""
    for chore in all_chores():
        try:
            chore()
        except Exception:
            logger.exception("Part of the upkeep failed.")


def run_upkeep() -> None:
    """Do one round of upkeep: recover, send and schedule jobs."""
    run_chores()
    queue.recover_lost_jobs()
    queue.send_due_jobs()
    queue.start_scheduled_jobs()


@contextmanager
def _heartbeat() -> Iterator[None]:
    """Keep this worker's row alive, in a thread that also does the upkeep."""
    try:
        with repeat_in_thread(_beat, lease() / 6, name="clock", at_once=True):
            yield
    finally:
        try:
            Worker.objects.filter(pk=worker_id()).update(stopped_at=timezone.now())
        except Error:
            logger.exception("The worker’s stop couldn’t be recorded.")


def _beat() -> None:
    try:
        Worker.objects.update_or_create(pk=worker_id(), defaults={"beat_at": timezone.now()})
        run_upkeep()
    except Exception:  # The next round follows in any case.
        logger.exception("A scheduled run was missed.")
