"""Background jobs of the registry: refresh the portfolio, import a file."""

import time
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from io import BytesIO

from django.db import transaction
from django.utils import timezone

from portal.audit.chain import append
from portal.audit.models import Actor
from portal.audit.service_health import PAUSE, current_outage
from portal.gateway.reading import LiveCopy, due_for_refresh, read_at_pace
from portal.jobs.execution import Progress
from portal.jobs.kinds import job
from portal.lookup.imports import import_ids, import_profiles, open_lines
from portal.lookup.models import Upload
from portal.messaging.news import queue_reads_since
from portal.records.models import Kind

REFRESHED_KINDS = [Kind.LOAN, Kind.LINE, Kind.APPLICATION]
IMPORTERS = {Upload.What.IDS: import_ids, Upload.What.PROFILES: import_profiles}
# A file that is rejected as a whole has the same reason for every line.
MAX_REFUSED_STORED = 10_000


@job(
    "lookup.refresh_portfolio",
    label="Refresh all accounts",
    single=True,
    every="REFRESH_MINUTES",
    yields_to_others=True,
)
def refresh_portfolio(
    progress: Progress, *, kind: str = "", older_than: float = 24, rate: float | None = None
) -> None:
    """Refresh every account whose copy was too old when the job started; a resumed job skips what it already read."""
    actor = Actor.system("refresh")
    copies = accounts_to_refresh(kind, progress.job.created_at - timedelta(hours=older_than))
    progress.resume(len(copies))
    for is_read in refresh_accounts(actor, copies, rate=rate):
        progress.step(failed=not is_read)
    finished = progress.job
    # These came after their account was read, and what they are about may be on file by now.
    queue_reads_since(finished.created_at)
    detail = {"read": finished.done, "failed": finished.failed, "started_by": finished.actor_name}
    append(actor, "lookup.refresh_portfolio", detail=detail)


def accounts_to_refresh(kind: str, before: datetime) -> list[LiveCopy]:
    """The copies of accounts of one kind or of all that were last read before this time, the most urgent first."""
    return due_for_refresh([kind] if kind else REFRESHED_KINDS, older_than=before)


def refresh_accounts(actor: Actor, copies: list[LiveCopy], *, rate: float | None) -> Iterator[bool]:
    """Read accounts one by one, and slower while the service is down."""
    for _, is_read in read_at_pace(actor, copies, rate=rate):
        yield is_read
        if current_outage():
            time.sleep(PAUSE.total_seconds())


@job("lookup.import_file", label="Import records")
def import_file(progress: Progress, *, upload: int) -> dict[str, int]:
    """Import an uploaded file; a second attempt imports the same lines again, which changes nothing."""
    found = Upload.objects.defer(None).get(pk=upload)
    if found.finished_at:  # Its worker died before reporting that.
        return {"taken": found.taken, "refused": found.refused_count}
    content = found.file
    progress.begin(total=content.count(b"\n") + (not content.endswith(b"\n")))
    lines = _report_progress(open_lines(BytesIO(content)), progress)
    report = IMPORTERS[Upload.What(found.what)](lines, by=found.by_name, at=found.at)
    result = {"taken": report.taken, "refused": len(report.refused)}
    found.taken, found.refused_count = report.taken, len(report.refused)
    found.refused, found.remark = report.refused[:MAX_REFUSED_STORED], report.remark
    found.content, found.finished_at = None, timezone.now()
    with transaction.atomic():
        found.save()
        detail = result | {"started_by": found.by_name}
        append(Actor.system("import"), "lookup.import_records", subject_label=found.name, detail=detail)
    return result


def _report_progress(lines: Iterable[str], progress: Progress) -> Iterator[str]:
    for line in lines:
        progress.step()
        yield line
