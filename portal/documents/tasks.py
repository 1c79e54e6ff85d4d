"""Background jobs for documents."""

from typing import Any

from django.db import transaction

from portal.documents.batches import print_batch, print_joined
from portal.documents.document import record_print
from portal.documents.models import Batch, Item, LongDocument, remove_expired
from portal.documents.pdf import NotRendered, render
from portal.jobs.execution import Progress
from portal.jobs.kinds import job


@job("documents.long_document", label="Create a document")
def create_long_document(progress: Progress, *, document: str) -> None:
    """Create the PDF of a saved document, and record the print."""
    found = LongDocument.objects.get(pk=document)
    waiting = LongDocument.objects.filter(pk=document, document=None, reason="")
    if not waiting.exists():  # An earlier attempt finished it but died before reporting that.
        return
    try:
        file = render(found.html, on_page=lambda pages: progress.step(0, words=f"Page {pages}"))
    except NotRendered as reason:
        waiting.update(reason=str(reason)[:500], html="")
        progress.step(failed=1)
        return
    with transaction.atomic():
        if waiting.update(document=file, html=""):
            record_print(found.actor, found.print_entry, file)
    progress.step()


@job("documents.batch", label="Print borrower summaries", attempts=20, yields_to_others=True)
def create_batch(progress: Progress, *, batch: str) -> dict[str, int]:
    """Print the waiting items of a batch; a second attempt skips finished ones."""
    found = Batch.objects.get(pk=batch)
    items = found.items
    progress.job.failed = items.filter(state=Item.State.FAILED).count()
    progress.resume(items.filter(state=Item.State.WAITING).count())
    for item in print_batch(found):
        progress.step(failed=item.state == Item.State.FAILED)
    return {str(state): items.filter(state=state).count() for state in (Item.State.DONE, Item.State.FAILED)}


@job("documents.joined_batch", label="Print borrower summaries", attempts=20)
def create_joined_batch(progress: Progress, *, batch: str) -> Any:
    """Print a batch as one PDF; what can't be joined becomes a PDF each."""
    found = Batch.objects.get(pk=batch)
    waiting = found.items.filter(state=Item.State.WAITING).count()
    progress.resume(waiting)
    print_joined(found, lambda number: progress.step(0, words=f"Borrower {number} of {waiting}"))
    return create_batch.work(progress, batch=batch)


@job("documents.remove", label="Delete expired summaries", single=True, every="BATCH_REMOVAL_MINUTES")
def remove(progress: Progress) -> dict[str, int]:
    return {"removed": remove_expired()}
