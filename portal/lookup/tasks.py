"""What search and the registry do in the background."""

from collections.abc import Iterable, Iterator
from datetime import timedelta
from io import BytesIO

from django.db import transaction
from django.utils import timezone

from portal.audit.chain import append
from portal.audit.models import Actor
from portal.jobs.kinds import job
from portal.jobs.running import Progress
from portal.lookup.imports import import_ids, import_profiles, lines_of
from portal.lookup.models import Upload
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


TAKERS = {Upload.What.IDS: import_ids, Upload.What.PROFILES: import_profiles}
# A file that is refused as a whole says the same in every line.
REASONS_KEPT = 10_000


@job("lookup.import_file", label="Taking in a file of records")
def import_file(progress: Progress, *, upload: int) -> dict[str, int]:
    """One uploaded file; begun again, it takes the same lines once more, which changes nothing."""
    found = Upload.objects.defer(None).get(pk=upload)
    if found.finished_at:  # Its worker died before it could say so.
        return {"taken": found.taken, "refused": found.refused_count}
    content = found.file
    progress.begin(total=content.count(b"\n") + (not content.endswith(b"\n")))
    lines = _counted(lines_of(BytesIO(content)), progress)
    report = TAKERS[Upload.What(found.what)](lines, by=found.by_name, at=found.at)
    result = {"taken": report.taken, "refused": len(report.refused)}
    found.taken, found.refused_count = report.taken, len(report.refused)
    found.refused, found.remark = report.refused[:REASONS_KEPT], report.remark
    found.content, found.finished_at = None, timezone.now()
    with transaction.atomic():
        found.save()
        detail = result | {"started_by": found.by_name}
        append(Actor.system("import"), "lookup.import_records", subject_label=found.name, detail=detail)
    return result


def _counted(lines: Iterable[str], progress: Progress) -> Iterator[str]:
    for line in lines:
        progress.step()
        yield line
