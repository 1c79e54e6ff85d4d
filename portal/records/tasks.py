"""Background jobs of the registry, which keep figures current with the business date."""

from portal.jobs.execution import Progress
from portal.jobs.kinds import chore, job
from portal.jobs.queue import start_job
from portal.records.recalculation import outdated_accounts, recalculate_batch


@job("records.recalculate_figures", label="Recalculate figures", single=True, yields_to_others=True)
def recalculate_figures(progress: Progress) -> None:
    """Recalculate all figures outdated by a new business date or new rules."""
    while number := recalculate_batch():
        progress.step(number)


@chore
def recalculate_after_midnight() -> None:
    """Start the job once there is something to recalculate."""
    if outdated_accounts().exists():
        start_job(recalculate_figures)
