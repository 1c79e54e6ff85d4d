"""Background jobs for messages."""

from datetime import datetime

from portal.audit.models import Actor
from portal.jobs.execution import Progress
from portal.jobs.kinds import job
from portal.messaging.models import Message, Run
from portal.messaging.sync import Sync
from portal.ui import wording


@job("messaging.sync", label="Sync messages", single=True, every="MESSAGE_SYNC_MINUTES", gives_way=True)
def sync(progress: Progress, *, read_before: str = "") -> dict[str, int]:
    """Read all missing messages; a second attempt resumes.

    With ``read_before``, every day that was not read since then is compared.
    """
    reported: int | None = None

    def report(run: Run) -> None:
        nonlocal reported
        if reported is None:
            progress.resume(run.missing)
        progress.step(run.added - (reported or 0), words=wording.day(run.day) or "")
        reported = run.added

    limit = datetime.fromisoformat(read_before) if read_before else None
    run = Sync(Actor.system("sync"), report=report, read_before=limit).read_missing()
    new = progress.job.done
    # An earlier attempt may have marked some.
    gone = Message.objects.filter(gone_at__gte=progress.job.started_at).count()
    return {"new": new, "already here": run.claimed - new, "total": run.claimed, "gone": gone}
