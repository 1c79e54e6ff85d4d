"""The background jobs that write the book, and give a demo a past."""

from datetime import date

from portal.jobs.execution import Progress
from portal.jobs.kinds import chore, job
from portal.jobs.queue import start_job
from portal.portfolio import demo, writing


@job("portfolio.write_days", label="Write the book", single=True, attempts=20, yields_to_others=True)
def write_days(progress: Progress) -> dict[str, int]:
    """Write the days that are over; a second attempt continues."""
    return {"days": writing.write_days(progress)}


@chore
def write_after_midnight() -> None:
    """Start the job once a day is over."""
    if writing.is_due():
        start_job(write_days)


@job("portfolio.demo_past", label="Add 90 days to the demo", single=True, attempts=20)
def add_past(progress: Progress, *, until: str) -> None:
    """Let a demo's days pass up to this one."""
    demo.add_past(progress, date.fromisoformat(until), write_days)
