"""One attempt at a job: leased while its worker lives, and ended exactly once.

A thread renews the lease. A worker that lost it (it was frozen, or cut off from the database) finds at its next step
that the job belongs to another worker, and stops changing anything.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any

from django.db import DatabaseError, connection
from django.db.models import QuerySet
from django.utils import timezone

from portal.jobs.kinds import JobKind, find_kind
from portal.jobs.models import Job, lease
from servicing import ServicingError

State = Job.State
logger = logging.getLogger(__name__)

# Set when this process is asked to stop: the running job is given back at its next step.
stopping = threading.Event()
# Progress is written at most this often, however many steps there are.
WRITE_INTERVAL_SECONDS = 0.5
# A long job that gives way to others runs at least this long first.
MIN_SLICE = timedelta(seconds=5)
# Before the second attempt; twice as long before the third, and so on up to the longest.
RETRY_PAUSE = timedelta(seconds=10)
MAX_RETRY_PAUSE = timedelta(minutes=2)


class Stopped(BaseException):
    """The job must stop now. ``except Exception`` does not catch it."""


class Canceled(Stopped):
    """Somebody canceled the job."""


class Requeued(Stopped):
    """The worker stops or another job goes first; the job continues later, perhaps elsewhere."""


class LeaseLost(Stopped):
    """The lease ran out, and another worker has the job."""


class Progress:
    """What a task reports while it works. Every call may raise :class:`Stopped`."""

    def __init__(self, job: Job, *, yields_to_others: bool = False) -> None:
        self.job = job
        self._yields_to_others = yields_to_others
        self._started = time.monotonic()
        own = Job.objects.filter(pk=job.pk, attempts=job.attempts, worker=job.worker)
        self.claim = own.filter(state=State.RUNNING)
        self._written = 0.0

    def begin(self, *, total: int) -> None:
        """Report a start from the beginning with this much to do."""
        self.job.done, self.job.failed, self.job.total = 0, 0, total
        self._write("")

    def resume(self, remaining: int) -> None:
        """Report how much is left; an earlier attempt may have done more than it reported."""
        self.job.total = max(self.job.total or 0, self.job.done + remaining)
        self.job.done = self.job.total - remaining
        self._write("")

    def step(self, count: int = 1, *, failed: int = 0, words: str = "") -> None:
        """Report that this much more is done, some of it without success."""
        self.job.done += count
        self.job.failed += failed
        if words:
            self.job.words = words[:300]
        if stopping.is_set() or time.monotonic() - self._written >= WRITE_INTERVAL_SECONDS:
            self._write(self.job.words)

    def _write(self, words: str) -> None:
        self.job.words = words[:300]
        self._written = time.monotonic()
        if not self.claim.update(**self._counts(), words=self.job.words):
            raise LeaseLost
        if self.is_canceled:
            raise Canceled
        if stopping.is_set() or self._should_yield():
            raise Requeued

    def _counts(self) -> dict[str, Any]:
        return {"done": self.job.done, "total": self.job.total, "failed": self.job.failed}

    @property
    def is_canceled(self) -> bool:
        """Whether somebody canceled the job since it was claimed."""
        return self.claim.filter(cancel_asked_at__isnull=False).exists()

    def _should_yield(self) -> bool:
        if not self._yields_to_others or time.monotonic() - self._started < MIN_SLICE.total_seconds():
            return False
        return Job.objects.filter(state=State.WAITING, due_at__lte=timezone.now()).exists()

    def finish(self, state: str, **fields: Any) -> None:
        """Save the end of the job or its next attempt, if it still belongs to this worker."""
        finished = {} if state in Job.OPEN else {"finished_at": timezone.now()}
        self.claim.update(**self._counts() | finished | {"state": state} | fields)


def run_job(job: Job) -> None:
    kind = find_kind(job.name)
    progress = Progress(job, yields_to_others=bool(kind and kind.yields_to_others))
    if kind is None:
        progress.finish(State.FAILED, words="The worker doesn’t support this kind of job.")
        return
    # A task may take a long time between two steps.
    with repeat_in_thread(partial(_renew_lease, progress.claim), lease() / 3, name="lease"):
        _attempt(kind, job, progress)


def _attempt(kind: JobKind, job: Job, progress: Progress) -> None:
    try:
        result = kind.work(progress, **job.arguments)
    except Canceled:
        progress.finish(State.CANCELLED, words="")
    except LeaseLost:
        logger.warning("Job %s (%s) was taken over by another worker.", job.pk, job.name)
    except Requeued:
        _requeue(job, progress)
    except ServicingError as error:  # While the service is away, every run fails with the same sentence.
        logger.warning("Job %s (%s) failed at attempt %s: %s", job.pk, job.name, job.attempts, error)
        _retry_later(job, progress, kind, type(error).__name__)
    except Exception as error:
        logger.exception("Job %s (%s) failed at attempt %s.", job.pk, job.name, job.attempts)
        _retry_later(job, progress, kind, type(error).__name__)
    except BaseException:  # The process is being ended.
        _requeue(job, progress)
        raise
    else:
        progress.finish(State.DONE, result=result, words="")


def _requeue(job: Job, progress: Progress) -> None:
    """Put the job back in line; an attempt interrupted on purpose does not count."""
    progress.finish(State.WAITING, due_at=timezone.now(), attempts=job.attempts - 1, worker="")


def _retry_later(job: Job, progress: Progress, kind: JobKind, error: str) -> None:
    if progress.is_canceled:
        progress.finish(State.CANCELLED, words="")
    elif job.attempts >= kind.attempts:
        progress.finish(State.FAILED, words=f"Failed {job.attempts} times, last with {error}.")
    else:
        due_at = timezone.now() + min(RETRY_PAUSE * job.attempts, MAX_RETRY_PAUSE)
        words = f"Attempt {job.attempts} of {kind.attempts} failed with {error}. Retrying."
        progress.finish(State.WAITING, due_at=due_at, worker="", words=words)


def _renew_lease(claim: "QuerySet[Job]") -> None:
    try:
        claim.update(due_at=timezone.now() + lease())
    except DatabaseError:
        logger.warning("A job lease couldn’t be renewed.", exc_info=True)


@contextmanager
def repeat_in_thread(
    work: Callable[[], object], pause: timedelta, *, name: str, at_once: bool = False
) -> Iterator[None]:
    """Repeat the work after each pause, in a thread with its own connection, until the block ends."""
    is_over = threading.Event()

    def run() -> None:
        is_due = at_once
        while is_due or not is_over.wait(pause.total_seconds()):
            try:
                work()
            finally:
                is_due = False
                connection.close()

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
