"""What documents do in the background."""

from django.db import transaction

from portal.jobs.kinds import job
from portal.jobs.running import Progress
from portal.summaries.batches import draw
from portal.summaries.documents import record_print
from portal.summaries.models import Batch, Item, LongDocument, remove_expired
from portal.summaries.pdf import NotDrawn, render

LONG_TIME_LIMIT_SECONDS = 300


@job("summaries.long_document", label="Creating a document")
def create_long_document(progress: Progress, *, document: str) -> None:
    """Draw a document that was laid out already, and record the print with it."""
    found = LongDocument.objects.get(pk=document)
    waiting = LongDocument.objects.filter(pk=document, document=None, reason="")
    if not waiting.exists():  # an earlier attempt finished it and died before it could say so
        return
    try:
        drawn = render(
            found.html,
            time_limit=LONG_TIME_LIMIT_SECONDS,
            on_page=lambda pages: progress.step(0, words=f"Page {pages}"),
        )
    except NotDrawn as reason:
        waiting.update(reason=str(reason)[:500], html="")
        progress.step(failed=1)
        return
    with transaction.atomic():
        if waiting.update(document=drawn, html=""):
            record_print(found.actor, found.print_entry, drawn)
    progress.step()


@job("summaries.batch", label="Printing borrower summaries", attempts=20, gives_way=True)
def draw_batch(progress: Progress, *, batch: str) -> dict[str, int]:
    """Draw what still waits in a batch; begun again, it leaves out what is finished."""
    found = Batch.objects.get(pk=batch)
    items = found.items
    progress.job.failed = items.filter(state=Item.State.FAILED).count()
    progress.resume(items.filter(state=Item.State.WAITING).count())
    for item in draw(found):
        progress.step(failed=item.state == Item.State.FAILED)
    counted = {state: items.filter(state=state).count() for state in (Item.State.DONE, Item.State.FAILED)}
    return {str(state): number for state, number in counted.items()}


@job(
    "summaries.remove", label="Removing old batches of summaries", single=True, every="BATCH_REMOVAL_MINUTES"
)
def remove(progress: Progress) -> dict[str, int]:
    """Take away the documents of batches that have been kept long enough."""
    return {"removed": remove_expired()}
