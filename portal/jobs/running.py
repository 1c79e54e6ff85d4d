"""One attempt at a job: claimed by one worker, leased while it lives, and given exactly one end.

Whoever claims a job holds a lease that a thread renews. A worker that lost its lease (it was frozen, or cut off from
the database) finds at its next step that the job is somebody else's, and changes nothing any more.
"""

import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from uuid import uuid4

from django.db import DatabaseError, connection
from django.db.models import F, QuerySet
from django.db.models.functions import Coalesce
from django.utils import timezone

from portal import tracing
from portal.jobs import kinds
from portal.jobs.models import Job, lease

State = Job.State
logger = logging.getLogger(__name__)

# Set when this process is told to stop: the job under way is given back at its next step.
stopping = threading.Event()
# Progress is written this often, however many steps there are.
WRITES = 0.5
# A long job that gives way to others works at least this long.
SLICE = timedelta(seconds=5)
# Before the second attempt; twice as long before the third, and so on up to the longest.
PAUSE = timedelta(seconds=10)
LONGEST_PAUSE = timedelta(minutes=2)


_token = uuid4().hex


def worker_id() -> str:
    """This process, as it signs its claims; the number tells apart what an engine forked."""
    return f"{_token}-{os.getpid()}"


class Stopped(BaseException):
    """A job leaves its work: cancelled, given back, or no longer this worker's. No ``except Exception`` holds it."""

    words = ""

    def __str__(self) -> str:
        return self.words


class Cancelled(Stopped):
    """Somebody cancelled the job."""

    words = "Somebody cancelled it."


class GivenBack(Stopped):
    """The worker stops, or another job goes first; it goes on later, perhaps elsewhere."""

    words = "It made way, and goes on by itself."


class Lost(Stopped):
    """The lease ran out, and the job was handed on."""

    words = "Another worker took it over."


class Progress:
    """What a task tells about itself while it works; every call of it is a place to stop."""

    def __init__(self, job: Job, *, gives_way: bool = False) -> None:
        self.job = job
        self._gives_way = gives_way
        self._began = time.monotonic()
        self.claim = Job.objects.filter(
            pk=job.pk, state=State.RUNNING, attempts=job.attempts, worker=job.worker
        )
        self._written = 0.0

    def begin(self, *, total: int | None = None, words: str = "") -> None:
        """From the start, with so much to do."""
        self.job.done = self.job.failed = 0
        self.job.total = total
        self._tell(words)

    def resume(self, remaining: int, words: str = "") -> None:
        """So much is left of what an earlier attempt may have begun: it may have done more than it told."""
        self.job.total = max(self.job.total or 0, self.job.done + remaining)
        self.job.done = self.job.total - remaining
        self._tell(words)

    def step(self, count: int = 1, *, failed: int = 0, words: str = "") -> None:
        """So much more is done, some of it in vain."""
        self.job.done += count
        self.job.failed += failed
        if words:
            self.job.words = words[:300]
        if stopping.is_set() or time.monotonic() - self._written >= WRITES:
            self._tell(self.job.words)

    def _tell(self, words: str) -> None:
        self.job.words = words[:300]
        self._written = time.monotonic()
        counts = {name: getattr(self.job, name) for name in ("done", "total", "failed", "words")}
        if not self.claim.update(**counts):
            raise Lost
        if self.is_cancelled:
            raise Cancelled
        if stopping.is_set() or self._should_give_way():
            raise GivenBack

    @property
    def is_cancelled(self) -> bool:
        """Whether somebody cancelled the job meanwhile."""
        return self.claim.filter(cancel_asked_at__isnull=False).exists()

    def _should_give_way(self) -> bool:
        if not self._gives_way or time.monotonic() - self._began < SLICE.total_seconds():
            return False
        return Job.objects.filter(state=State.WAITING).exists()

    def end(self, state: str, **fields: Any) -> bool:
        """Give the job its end, or its next attempt; false if it is no longer this worker's."""
        counts = {name: getattr(self.job, name) for name in ("done", "total", "failed")}
        ended = {"finished_at": timezone.now()} if state not in Job.OPEN else {}
        kept = counts | ended | {"state": state, "lease_until": None} | fields
        return bool(self.claim.update(**kept))


def run(job_id: str) -> None:
    """Work one job off, if it still waits: a second delivery, or one that comes too late, does nothing."""
    job = claim(job_id)
    if job is None:
        return
    kind = kinds.find(job.name)
    progress = Progress(job, gives_way=bool(kind and kind.gives_way))
    if kind is None:
        progress.end(State.FAILED, words="This kind of job is not known to the worker.")
        return
    with _leased(progress.claim):
        _attempt(kind, job, progress)


def claim(job_id: str) -> Job | None:
    """Make a waiting job this worker's; of several who try, one gets it."""
    now = timezone.now()
    mine = {"state": State.RUNNING, "attempts": F("attempts") + 1, "worker": worker_id()}
    waiting = Job.objects.filter(pk=job_id, state=State.WAITING)
    if not waiting.update(**mine, lease_until=now + lease(), started_at=Coalesce("started_at", now)):
        return None
    return Job.objects.get(pk=job_id)


def _attempt(kind: kinds.Kind, job: Job, progress: Progress) -> None:
    try:
        with tracing.span(job.name, {"desk.job": str(job.pk), "desk.tries": job.attempts}, kind="consumer"):
            result = kind.work(progress, **job.arguments)
    except Cancelled:
        progress.end(State.CANCELLED, words="")
    except Lost:
        logger.warning("Job %s (%s) was handed on to another worker.", job.pk, job.name)
    except GivenBack:
        _give_back(job, progress)
    except Exception as error:
        logger.exception("Job %s (%s) failed at attempt %s.", job.pk, job.name, job.attempts)
        _try_later(job, progress, kind, type(error).__name__)
    except BaseException:  # The process is made to end in the middle.
        _give_back(job, progress)
        raise
    else:
        progress.end(State.DONE, result=result, words="")


def _give_back(job: Job, progress: Progress) -> None:
    """An attempt that was interrupted on purpose does not count."""
    progress.end(State.WAITING, due_at=timezone.now(), attempts=job.attempts - 1, worker="")


def _try_later(job: Job, progress: Progress, kind: kinds.Kind, error: str) -> None:
    if progress.is_cancelled:
        progress.end(State.CANCELLED, words="")
        return
    if job.attempts >= kind.attempts:
        progress.end(State.FAILED, words=f"Failed {job.attempts} times; the last time with {error}.")
        return
    later = timezone.now() + min(PAUSE * job.attempts, LONGEST_PAUSE)
    words = f"Attempt {job.attempts} of {kind.attempts} failed with {error}; it is tried again."
    progress.end(State.WAITING, due_at=later, worker="", words=words)


@contextmanager
def _leased(claim: "QuerySet[Job]") -> Iterator[None]:
    """Renew the lease from a thread of its own: a task may be long between two steps."""
    over = threading.Event()
    thread = threading.Thread(target=_renew, args=[claim, over], name="lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _renew(claim: "QuerySet[Job]", over: threading.Event) -> None:
    try:
        while not over.wait(lease().total_seconds() / 3):
            try:
                claim.update(lease_until=timezone.now() + lease())
            except DatabaseError:
                logger.warning("A lease could not be renewed.", exc_info=True)
                connection.close()
    finally:
        connection.close()
