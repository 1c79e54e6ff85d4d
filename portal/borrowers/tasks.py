"""The background job of borrowers: refresh all accounts of one."""

from django.db.models import Q

from portal.audit.models import Actor
from portal.jobs.execution import Progress
from portal.jobs.kinds import job
from portal.jobs.models import Job
from portal.jobs.queue import open_job
from portal.live.reading import read_at_pace, repayment_lists
from portal.registry.models import Kind, Record


@job("borrowers.refresh_accounts", label="Refresh the accounts of a borrower")
def refresh_accounts(progress: Progress, *, borrower: str) -> None:
    """Read every account and its repayments; a resumed job skips what it already read."""
    kinds = [Kind.LOAN, Kind.LINE]
    of_borrower = Record.objects.filter(borrower_uuid=borrower, kind__in=kinds, archived_at__isnull=True)
    accounts = list(of_borrower)
    records = [*accounts, *repayment_lists(accounts)]
    pks, started_at = [record.pk for record in records], progress.job.created_at
    is_read = Q(checked_at__gte=started_at) | Q(said__failed_at__gte=started_at)
    due = list(Record.objects.filter(pk__in=pks).exclude(is_read).order_by("pk"))
    progress.resume(len(due))
    for _, is_read_now in read_at_pace(Actor.system("refresh"), due):
        progress.step(failed=not is_read_now)


def open_refresh(borrower_uuid: str) -> Job | None:
    """The job that refreshes a borrower's accounts, as long as it isn't over."""
    return open_job(refresh_accounts, about=borrower_uuid)
