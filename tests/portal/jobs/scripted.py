"""Kinds of job that run a function set by the test."""

from collections.abc import Callable

from portal.jobs.execution import Progress, run_job
from portal.jobs.kinds import job
from portal.jobs.models import Job
from portal.jobs.queue import take

SCRIPTS: dict[str, Callable[[Progress], object]] = {}


@job("tests.scripted", label="Something long", attempts=2)
def scripted(progress: Progress, *, script: str) -> object:
    return SCRIPTS[script](progress)


@job("tests.patient", label="Something patient", yields_to_others=True)
def patient(progress: Progress, *, script: str) -> object:
    return SCRIPTS[script](progress)


def run_taken(job: Job) -> None:
    """Take a job as a worker does, and run it."""
    taken = take(job)
    assert taken
    run_job(taken)
