"""Background jobs for messages."""

from datetime import date, timedelta
from typing import Any, Final

from django.db.models import F
from django.utils import timezone

from portal.audit.models import Actor
from portal.audit.service_health import current_outage
from portal.gateway.reading import account_copies, read_at_pace
from portal.jobs.execution import Progress
from portal.jobs.kinds import chore, job
from portal.jobs.queue import start_job
from portal.messaging.models import Message, PendingRead, Run
from portal.messaging.news import READ_INTERVAL, due_reads, forget_finished_reads
from portal.messaging.store import ONE_DAY, service_today
from portal.messaging.sync import RECENT_DAYS, Sync
from portal.records.models import Repayment
from portal.ui import wording

MAX_PAUSE: Final = timedelta(hours=1)
"""The longest time before an account that couldn't be read is tried again."""


@job(
    "messaging.sync", label="Sync messages", single=True, every="MESSAGE_SYNC_MINUTES", yields_to_others=True
)
def sync(progress: Progress) -> dict[str, int]:
    """Read new messages; a second attempt continues."""
    run = Sync(Actor.system("sync"), report=RunReport(progress)).read_missing()
    return _result(progress, run)


@job(
    "messaging.compare",
    label="Compare messages",
    single=True,
    every="MESSAGE_COMPARE_MINUTES",
    yields_to_others=True,
)
def compare(
    progress: Progress, *, since: str = "", until: str = "", all_days: bool = False
) -> dict[str, int]:
    """Compare the messages of the last 30 days, of other days or of all; a second attempt continues."""
    first = date.fromisoformat(since) if since else None
    last = date.fromisoformat(until) if until else None
    if not (first or last or all_days):
        first = service_today() - (RECENT_DAYS - 1) * ONE_DAY
    run = Sync(Actor.system("sync"), report=RunReport(progress), since=first, until=last)
    return _result(progress, run.compare(before=progress.job.created_at))


class RunReport:
    """Reports to a job how far a run is."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.added: int | None = None

    def __call__(self, run: Run) -> None:
        if self.added is None:
            self.progress.resume(run.missing)
        self.progress.step(run.added - (self.added or 0), words=wording.day(run.day) or "")
        self.added = run.added


def _result(progress: Progress, run: Run) -> dict[str, int]:
    new = progress.job.done
    # An earlier attempt may have marked some.
    gone = Message.objects.filter(gone_at__gte=progress.job.started_at).count()
    total = max(run.claimed, new)
    return {"new": new, "already here": total - new, "total": total, "gone": gone}


@job("messaging.read_news", label="Read accounts with news", single=True, yields_to_others=True)
def read_news(progress: Progress) -> dict[str, int]:
    """Read every account with news, newest first, until none is due or the service is out."""
    actor, done = Actor.system("news"), 0
    while (pending := due_reads().select_related("account__answer").first()) and not current_outage():
        done += read_account(actor, pending)
        progress.step()
    forget_finished_reads()
    return {"read": done}


def read_account(actor: Actor, pending: PendingRead) -> bool:
    """Read an account and its repayments, unless both were read since the news; return whether that succeeded.

    It is read once more if the payment isn't on file yet, and again later if the service didn't answer; not if the
    service refused.
    """
    account, now = pending.account, timezone.now()
    copies = [] if account.archived_at else account_copies(account)
    is_stale = any(pending.tries or one.at is None or one.at < pending.noticed_at for one in copies)
    failed = [one for one, is_read in read_at_pace(actor, copies) if not is_read] if is_stale else []
    is_refused = any(one.is_refused for one in failed)
    payment = Repayment.objects.filter(uuid=pending.payment_uuid)
    is_missing = bool(pending.payment_uuid) and not pending.tries and not payment.exists()
    values: dict[str, Any] = {"due_at": None}
    if (failed or is_missing) and not is_refused:
        values = {
            "due_at": now + min(READ_INTERVAL * (pending.tries + 1), MAX_PAUSE),
            "tries": F("tries") + 1,
        }
    own = PendingRead.objects.filter(pk=pending.pk)
    # More news may have come while it was read.
    if not own.filter(noticed_at=pending.noticed_at).update(read_at=now, **values):
        own.update(read_at=now, due_at=now + READ_INTERVAL)
    return not failed


@chore
def start_reading_news() -> None:
    """Start the job once there is something to read."""
    if due_reads().exists() and not current_outage():
        start_job(read_news)
