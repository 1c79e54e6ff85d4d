"""A kind of job whose work a test writes down."""

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
