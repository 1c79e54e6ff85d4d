"""What messages do in the background."""

from datetime import date, datetime

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
def sync(progress: Progress, *, since: str = "", until: str = "", read_before: str = "") -> dict[str, int]:
    """Every message that the local copy lacks; begun again, it goes on where it was.

    With ``read_before`` every day is compared with the service that was not since then.
    """
    told: int | None = None

    def tell(run: Run) -> None:
        nonlocal told
        if told is None:
            progress.resume(run.missing)
        progress.step(run.added - (told or 0), words=f"{run.day:%-d %b %Y}" if run.day else "")
        told = run.added

    actor = Actor.system("sync")
    limit = datetime.fromisoformat(read_before) if read_before else None
    run = begin(actor, since=_day(since), until=_day(until), report=tell, read_before=limit)()
    return {
        "new": progress.job.done,
        "already here": run.claimed - progress.job.done,
        "total": run.claimed,
        "gone": run.gone,
    }


def _day(text: str) -> date | None:
    return date.fromisoformat(text) if text else None
