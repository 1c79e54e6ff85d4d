"""Summaries of many borrowers at once.

Hides how a batch survives its worker and why no document is created twice. Each borrower is an item that is finished
in one transaction with its document, code and audit entry, so a worker that takes over finds exactly the waiting
items. Only documents being rendered are in memory.
"""

import io
import logging
import zipfile
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import transaction
from django.http import QueryDict
from django.utils import timezone

from portal.audit.chain import append
from portal.audit.models import Actor
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
from portal.documents.pdf import NotRendered, render
from portal.jobs.kinds import JobKind
from portal.jobs.queue import start_job
from portal.lists.pages import Listing
from portal.registry.models import Kind, Record
from portal.runtime.business_date import business_date
from servicing.masking import masked_text

logger = logging.getLogger(__name__)

MAX_BORROWERS = 5_000
INSERT_ROWS = 500


def start_batch(kind: JobKind, actor: Actor, found: Listing, *, form: str, options: str, zone: str) -> Batch:
    """Create a batch of the first borrowers in a list, and start its job."""
    filters = masked_text("; ".join(map(str, found.chips)))
    with transaction.atomic():
        chosen, columns = (filters or "all borrowers on file")[:500], Batch.columns_of(actor)
        batch = Batch.objects.create(form=form, chosen=chosen, options=options, zone=zone, **columns)
        rows = found.found.values_list("uuid", "label")[:MAX_BORROWERS]
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


def print_batch(batch: Batch) -> Iterator[Item]:
    """Finish each waiting item, in order; the next ones are rendered while one is recorded."""
    waiting = batch.items.filter(state=Item.State.WAITING).defer("document")
    options = Options.of(QueryDict(batch.options))
    under_way: deque[Callable[[], Item]] = deque()
    threads = ThreadPoolExecutor(settings.DOCUMENT_PROCESSES)
    try:
        with timezone.override(ZoneInfo(batch.zone)):
            for item in list(waiting):
                under_way.append(_start_item(threads, batch, item, options))
                if len(under_way) > settings.DOCUMENT_PROCESSES:
                    yield under_way.popleft()()
            while under_way:
                yield under_way.popleft()()
    finally:  # Don't wait for documents when a batch stops here.
        threads.shutdown(wait=False, cancel_futures=True)


def _start_item(
    threads: ThreadPoolExecutor, batch: Batch, item: Item, options: Options
) -> Callable[[], Item]:
    """Start rendering one summary; the returned function waits for it and records it."""
    try:
        document = _document(batch.actor, item, options)
        stamp = Stamp.new(borrower_summary.FORM, at=timezone.now(), by=batch.actor_name)
        rendering = threads.submit(render, document.html(stamp))
    except Record.DoesNotExist:
        return partial(_fail, item, "This borrower is no longer on file.")
    except LAYOUT_ERRORS as error:
        logger.exception("The summary of %s couldn’t be created.", item.borrower_uuid)
        return partial(_fail, item, f"The summary can’t be created ({type(error).__name__}).")
    return partial(_finish, batch.actor, item, document, stamp, rendering.result)


def _document(actor: Actor, item: Item, options: Options) -> Document:
    borrower = Record.objects.get(kind=Kind.BORROWER, uuid=item.borrower_uuid)
    copies = read_copies(actor, borrower_summary.accounts_of(borrower), options)
    return borrower_summary.document(borrower, copies, options, today=business_date())


def _finish(
    actor: Actor, item: Item, document: Document, stamp: Stamp, wait_for_file: Callable[[], bytes]
) -> Item:
    """Save document, code and audit entry in one transaction, unless somebody else finished the item."""
    try:
        file = wait_for_file()
    except NotRendered as reason:
        return _fail(item, str(reason))
    file_name = f"{item.position:04}-{document.file_name}"
    with transaction.atomic():
        if _end(item, Item.State.DONE, code=stamp.code, file_name=file_name, document=file):
            record_print(actor, print_entry(document, stamp), file)
    return item


def _fail(item: Item, reason: str) -> Item:
    _end(item, Item.State.FAILED, reason=reason[:500])
    return item


def _end(item: Item, state: str, **fields: object) -> bool:
    item.state = state
    return bool(Item.objects.filter(pk=item.pk, state=Item.State.WAITING).update(state=state, **fields))


# --- The download ---


def finished_items(batch: Batch) -> Iterator[Item]:
    """Read the items with a document from the database, one by one."""
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
