"""What documents do in the background."""

from portal.jobs.kinds import job
from portal.jobs.running import Progress
from portal.summaries.batches import draw
from portal.summaries.models import Batch, Item, remove_expired


@job("summaries.batch", label="Printing borrower summaries", attempts=20)
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
