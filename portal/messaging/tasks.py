"""What messages do in the background."""

from datetime import date

from portal.audit.models import Actor
from portal.jobs.kinds import job
from portal.jobs.running import Progress
from portal.messaging.models import Run
from portal.messaging.sync import begin


@job(
    "messaging.sync",
    label="Reading messages that are missing",
    single=True,
    every="MESSAGE_SYNC_MINUTES",
    gives_way=True,
)
def sync(progress: Progress, *, since: str = "", until: str = "") -> dict[str, int]:
    """Every message that the local copy lacks; begun again, it goes on where it was."""
    told = 0

    def tell(run: Run) -> None:
        nonlocal told
        if progress.job.total is None:
            progress.begin(total=run.missing)
        progress.step(run.added - told, words=f"{run.day:%-d %b %Y}" if run.day else "")
        told = run.added

    actor = Actor.system("sync")
    run = begin(actor, since=_day(since), until=_day(until), report=tell)()
    return {"new": run.added}


def _day(text: str) -> date | None:
    return date.fromisoformat(text) if text else None
