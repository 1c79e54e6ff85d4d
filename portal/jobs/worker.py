"""The process of ``manage.py work``: works jobs off one after the other, keeps the clock, and stops gracefully.

With the database engine it is that engine's own loop. Another engine brings its own workers; this process then only
keeps the clock: lost jobs and repeated jobs are handed to that engine.
"""

import logging
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from django.conf import settings
from django.db import Error, connection
from django.utils import timezone
from django_tasks import DEFAULT_TASK_BACKEND_ALIAS, DEFAULT_TASK_QUEUE_NAME
from django_tasks_db.management.commands import db_worker

from portal.jobs import engine, running, upkeep
from portal.jobs.models import Job, Worker, lease

logger = logging.getLogger(__name__)

# A job waits this long for a worker that has nothing to do.
POLL = 0.5


class Loop(db_worker.Worker):
    """The database engine's loop: told to stop it gives the job under way back, at its next step or after the grace."""

    def __init__(self) -> None:
        super().__init__(
            queue_names=[DEFAULT_TASK_QUEUE_NAME],
            excluded_queue_names=[],
            interval=POLL,
            batch=False,
            backend_name=DEFAULT_TASK_BACKEND_ALIAS,
            startup_delay=False,
            max_tasks=None,
            worker_id=running.worker_id()[:64],
        )

    def run(self) -> None:
        """The engine's loop ends with any error of the database; here it is entered again."""
        while self.running:
            with _surviving("The worker could not ask for jobs; it asks again."):
                super().run()

    def run_task(self, db_task_result: Any) -> None:
        """As the engine does; what is told to stop and ends in time needs no alarm any more."""
        try:
            super().run_task(db_task_result)
        finally:
            signal.alarm(0)

    def shutdown(self, signum: int, frame: FrameType | None) -> None:
        """The first signal asks; a second one, or the grace's end, breaks off what is under way."""
        if not self.running:
            self.interrupt()
            return
        self.running = False
        if not self.running_task:
            sys.exit(0)
        running.stopping.set()
        signal.signal(signal.SIGALRM, self.interrupt)
        signal.alarm(settings.JOB_GRACE_SECONDS)

    def interrupt(self, *_: Any) -> None:
        """Break the task under way off; it is given back."""
        if self.running_task:
            raise running.GivenBack


def work_off() -> None:
    """Everything that waits now, oldest first, in this process; what the engine delivers after it does nothing."""
    upkeep.do_chores()
    upkeep.hand_on()
    waiting = Job.objects.filter(state=Job.State.WAITING).order_by("created_at")
    for job_id in list(waiting.values_list("pk", flat=True)):
        running.run(str(job_id))


def work() -> None:
    """Until this process is told to stop."""
    with _beating():
        if engine.is_database():
            loop = Loop()
            loop.configure_signals()
            loop.run()
        else:
            signal.signal(signal.SIGTERM, lambda *_: running.stopping.set())
            running.stopping.wait()


@contextmanager
def _surviving(words: str) -> Iterator[None]:
    """Whatever the database answers is logged, and asked again on another connection a moment later."""
    try:
        yield
    except Error:
        logger.exception(words)
        connection.close()
        time.sleep(POLL)


@contextmanager
def _beating() -> Iterator[None]:
    """A row that says this worker lives, and a thread that keeps it true and the clock running."""
    pk, over = running.worker_id(), threading.Event()
    thread = threading.Thread(target=_beat, args=[pk, over], name="clock", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        with _surviving("It could not be noted that the worker stopped."):
            Worker.objects.filter(pk=pk).update(stopped_at=timezone.now())


def _beat(pk: str, over: threading.Event) -> None:
    while True:
        try:
            Worker.objects.update_or_create(pk=pk, defaults={"beat_at": timezone.now()})
            upkeep.tick()
        except Exception:  # Whatever it was, the next round is due all the same.
            logger.exception("A round of the clock was missed.")
        finally:
            connection.close()
        if over.wait(lease().total_seconds() / 6):
            return
