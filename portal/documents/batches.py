"""Summaries of many borrowers at once: one PDF of a few, or a ZIP file with a PDF each.

Hides how a batch survives its worker and why no document is created twice. Each borrower is an item that is finished
in one transaction with its document, code and audit entry, so a worker that takes over finds exactly the waiting
items. A joined PDF finishes all its items in one transaction.
"""

import io
import logging
import zipfile
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import transaction
from django.http import QueryDict
from django.utils import timezone

from portal.audit.chain import append
from portal.audit.models import Actor
from portal.core.business_date import business_date
from portal.documents import borrower_summary
from portal.documents.document import (
    LAYOUT_ERRORS,
    Document,
    Stamp,
    print_entry,
    read_copies,
    record_print,
)
from portal.documents.models import Batch, Item
from portal.documents.options import Options
from portal.documents.pdf import Listener, NotRendered, render, render_together
from portal.jobs.kinds import JobKind
from portal.jobs.queue import start_job
from portal.records.models import Borrower
from portal.tables.pages import Listing
from servicing.masking import masked_text

logger = logging.getLogger(__name__)

MAX_BORROWERS = 5_000
MAX_JOINED_BORROWERS = 50
INSERT_ROWS = 500


def start_batch(kind: JobKind, actor: Actor, found: Listing, *, form: str, options: str, zone: str) -> Batch:
    """Create a batch of the first borrowers in a list, and start its job."""
    filters = masked_text("; ".join(map(str, found.chips)))
    with transaction.atomic():
        chosen, columns = (filters or "all borrowers on file")[:500], Batch.columns_of(actor)
        batch = Batch.objects.create(form=form, chosen=chosen, options=options, zone=zone, **columns)
        rows = found.found.values_list("uuid", "name")[:MAX_BORROWERS]
        items = [
            Item(batch=batch, position=position, borrower_uuid=uuid, label=label or uuid)
            for position, (uuid, label) in enumerate(rows, 1)
        ]
        Item.objects.bulk_create(items, batch_size=INSERT_ROWS)
        append(
            actor,
            "summaries.batch",
            subject_label=f"{len(items):,} summaries",
            detail={"batch": str(batch.pk), "chosen": batch.chosen, "rows": len(items), "options": options},
        )
        batch.job = start_job(kind, by=actor, batch=str(batch.pk))
        batch.save(update_fields=["job"])
    return batch


def print_joined(batch: Batch, on_paper: Listener) -> None:
    """Finish all waiting items with one PDF, unless that has too many pages or takes too much time or memory.

    Then those that have a PDF of their own by then are finished, and the others still wait.
    """
    if batch.items.filter(state=Item.State.DONE).exists():  # An earlier attempt could not join all.
        return
    options = Options.of(QueryDict(batch.options))
    papers: list[Paper] = []
    with timezone.override(ZoneInfo(batch.zone)):
        for number, item in enumerate(_waiting(batch), 1):
            on_paper(number)
            if paper := _lay_out(batch, item, options):
                papers.append(paper)
        if not papers:
            return
        try:
            joined = render_together(
                [paper.html for paper in papers],
                title=f"Borrower summaries: {batch.chosen}",
                on_paper=on_paper,
            )
        except NotRendered:
            logger.exception("The summaries of batch %s couldn’t be joined.", batch.pk)
            return
        with transaction.atomic():
            Batch.objects.select_for_update().defer("document").get(pk=batch.pk)
            if len(_waiting(batch)) < len(papers):  # Another worker finished them.
                return
            Batch.objects.filter(pk=batch.pk).update(document=joined.file)
            for paper, file in zip(papers, joined.papers, strict=False):
                if isinstance(file, NotRendered):
                    _fail(paper.item, str(file))
                else:
                    _finish(batch.actor, paper, file, joined.file)


def print_batch(batch: Batch) -> Iterator[Item]:
    """Finish each waiting item with its own PDF, in order; the next ones are rendered while one is recorded."""
    options = Options.of(QueryDict(batch.options))
    under_way: deque[Callable[[], Item]] = deque()
    threads = ThreadPoolExecutor(settings.DOCUMENT_PROCESSES)
    try:
        with timezone.override(ZoneInfo(batch.zone)):
            for item in _waiting(batch):
                if paper := _lay_out(batch, item, options):
                    rendering = threads.submit(render, paper.html)
                    under_way.append(partial(_finish_alone, batch.actor, paper, rendering.result))
                else:
                    yield item
                if len(under_way) > settings.DOCUMENT_PROCESSES:
                    yield under_way.popleft()()
            while under_way:
                yield under_way.popleft()()
    finally:  # Don't wait for documents when a batch stops here.
        threads.shutdown(wait=False, cancel_futures=True)


class Paper(NamedTuple):
    """An item's document, laid out as HTML."""

    item: Item
    document: Document
    stamp: Stamp
    html: str


def _waiting(batch: Batch) -> list[Item]:
    return list(batch.items.filter(state=Item.State.WAITING).defer("document"))


def _lay_out(batch: Batch, item: Item, options: Options) -> Paper | None:
    """The summary of an item as HTML; ``None`` if it fails."""
    try:
        document = _document(batch.actor, item, options)
        stamp = Stamp.new(borrower_summary.FORM, at=timezone.now(), by=batch.actor_name)
        return Paper(item, document, stamp, document.html(stamp))
    except Borrower.DoesNotExist:
        _fail(item, "This borrower is no longer on file.")
    except LAYOUT_ERRORS as error:
        logger.exception("The summary of %s couldn’t be created.", item.borrower_uuid)
        _fail(item, f"The summary can’t be created ({type(error).__name__}).")
    return None


def _document(actor: Actor, item: Item, options: Options) -> Document:
    borrower = Borrower.objects.get(uuid=item.borrower_uuid)
    copies = read_copies(actor, borrower_summary.account_copies_of(borrower), options)
    return borrower_summary.document(borrower, copies, options, today=business_date())


def _finish_alone(actor: Actor, paper: Paper, wait_for_file: Callable[[], bytes]) -> Item:
    try:
        file = wait_for_file()
    except NotRendered as reason:
        return _fail(paper.item, str(reason))
    return _finish(actor, paper, file)


def _finish(actor: Actor, paper: Paper, file: bytes | None, joined: bytes | None = None) -> Item:
    """Save a PDF, its code and audit entry in one transaction, unless somebody else finished the item.

    An item in a joined PDF has no file of its own; its code stands for the joined one.
    """
    item, file_name = paper.item, f"{paper.item.position:04}-{paper.document.file_name}"
    with transaction.atomic():
        if _end(item, Item.State.DONE, code=paper.stamp.code, file_name=file_name, document=file):
            record_print(actor, print_entry(paper.document, paper.stamp), file or joined or b"")
    return item


def _fail(item: Item, reason: str) -> Item:
    _end(item, Item.State.FAILED, reason=reason[:500])
    return item


def _end(item: Item, state: str, **fields: object) -> bool:
    item.state = state
    return bool(Item.objects.filter(pk=item.pk, state=Item.State.WAITING).update(state=state, **fields))


# --- The download ---


def finished_items(batch: Batch) -> Iterator[Item]:
    return batch.items.filter(state=Item.State.DONE, document__isnull=False).iterator(10)


class _Stream(io.RawIOBase):
    """A file without seeking that returns what was written to it."""

    _written = b""

    def write(self, data: Any) -> int:
        self._written += data
        return len(data)

    def read_written(self) -> bytes:
        data, self._written = self._written, b""
        return data


def zip_documents(batch: Batch) -> Iterator[bytes]:
    """Stream a ZIP file with one document in memory at a time. PDFs are already compressed, so they are only stored."""
    stream = _Stream()
    created = batch.created_at.timetuple()[:6]
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for item in finished_items(batch):
            archive.writestr(zipfile.ZipInfo(item.file_name, created), bytes(item.document or b""))
            yield stream.read_written()
        failed = batch.items.filter(state=Item.State.FAILED).values_list("label", "borrower_uuid", "reason")
        lines = [f"{label} ({uuid}): {reason}\r\n" for label, uuid, reason in failed]
        if lines:
            archive.writestr(zipfile.ZipInfo("failed.txt", created), "".join(lines))
    yield stream.read_written()
