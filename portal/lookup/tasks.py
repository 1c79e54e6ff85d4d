"""What search and the registry do in the background."""

from datetime import timedelta

from portal.audit.chain import append
from portal.audit.models import Actor
from portal.jobs.kinds import job
from portal.jobs.running import Progress
from portal.lookup.refresh import due, read_all


@job(
    "lookup.refresh_portfolio",
    label="Reading the whole portfolio again",
    single=True,
    every="REFRESH_MINUTES",
    gives_way=True,
)
def refresh_portfolio(
    progress: Progress, *, kind: str = "", older_than: float = 24, rate: float = 10
) -> None:
    """Every account whose copy was older at the start; begun again, it leaves out what was read meanwhile."""
    actor = Actor.system("refresh")
    records = due(kind, progress.job.created_at - timedelta(hours=older_than))
    progress.resume(len(records))
    for went_well in read_all(actor, records, rate=rate):
        progress.step(failed=not went_well)
    told = progress.job
    detail = {"read": told.done, "failed": told.failed, "started_by": told.actor_name}
    append(actor, "lookup.refresh_portfolio", detail=detail)
