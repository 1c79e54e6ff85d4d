"""Kinds of job that run a function set by the test."""

from collections.abc import Callable

from portal.jobs.execution import Progress
from portal.jobs.kinds import job

SCRIPTS: dict[str, Callable[[Progress], object]] = {}


@job("tests.scripted", label="Something long", attempts=2)
def scripted(progress: Progress, *, script: str) -> object:
    return SCRIPTS[script](progress)


@job("tests.patient", label="Something patient", gives_way=True)
def patient(progress: Progress, *, script: str) -> object:
    return SCRIPTS[script](progress)
