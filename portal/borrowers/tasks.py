"""The background job of borrowers: refresh all accounts of one."""

from portal.audit.models import Actor
from portal.gateway.reading import account_copies, read_at_pace
from portal.jobs.execution import Progress
from portal.jobs.kinds import job
from portal.jobs.models import Job
from portal.jobs.queue import open_job
from portal.records.models import Account, Kind


@job("borrowers.refresh_accounts", label="Refresh the accounts of a borrower")
def refresh_accounts(progress: Progress, *, borrower: str) -> None:
    """Read every account and its lists; a resumed job skips what it already read."""
    kinds = [Kind.LOAN, Kind.LINE]
    of_borrower = Account.objects.filter(borrower_uuid=borrower, kind__in=kinds, archived_at__isnull=True)
    accounts, started_at = list(of_borrower.select_related("answer")), progress.job.created_at
    due = [
        copy
        for copy in account_copies(*accounts)
        if not any(at and at >= started_at for at in (copy.at, copy.saved.failed_at))
    ]
    progress.resume(len(due))
    for _, is_read_now in read_at_pace(Actor.system("refresh"), due):
        progress.step(failed=not is_read_now)


def open_refresh(borrower_uuid: str) -> Job | None:
    """The job that refreshes a borrower's accounts, as long as it isn't over."""
    return open_job(refresh_accounts, about=borrower_uuid)
