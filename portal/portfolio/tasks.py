"""The background job that writes the book."""

from portal.jobs.execution import Progress
from portal.jobs.kinds import chore, job
from portal.jobs.queue import start_job
from portal.portfolio import writing


@job("portfolio.write_days", label="Write the book", single=True, attempts=20, yields_to_others=True)
def write_days(progress: Progress) -> dict[str, int]:
    """Write the days that are over; a second attempt continues."""
    return {"days": writing.write_days(progress)}


@chore
def write_after_midnight() -> None:
    """Start the job once a day is over."""
    if writing.is_due():
        start_job(write_days)
