"""Summaries of many borrowers at once. Hides how a batch survives its worker and why no document comes twice.

Each borrower is an item of its own that is finished in one transaction with its document, its code and its audit entry:
whoever goes on after a worker died finds what is still waiting, and nothing else. Only the documents that are being
drawn are in memory.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import transaction
from django.http import QueryDict
from django.utils import timezone

from portal.audit.chain import append
from portal.audit.models import Actor
from portal.jobs.kinds import Kind as JobKind
from portal.jobs.queue import start
from portal.readings import Reading, ask
from portal.registry.lists import Listing
from portal.registry.models import Kind, Record
from portal.summaries.assemble import FORM, accounts_of, borrower_document
from portal.summaries.documents import BROKEN, Document, Stamp, print_entry, record_print
from portal.summaries.models import Batch, Item
from portal.summaries.options import Options
from portal.summaries.pdf import NotDrawn, render
from servicing.masking import masked_text

logger = logging.getLogger(__name__)

MOST: Final = 5_000
PATIENCE: Final = 8.0
CHUNK: Final = 500


def open_batch(work: JobKind, actor: Actor, found: Listing, *, form: str, options: str, zone: str) -> Batch:
    """A batch of the first :data:`MOST` borrowers of a list, begun in the background."""
    chosen = (
        masked_text("; ".join(f"{chip.label} {chip.words}" for chip in found.chips))
        or "all borrowers known here"
    )
    with transaction.atomic():
        batch = Batch.objects.create(
            form=form,
            chosen=chosen[:500],
            options=options,
            zone=zone,
            actor_id=actor.id,
            actor_name=actor.name,
            actor_role=actor.role,
            actor_ip=actor.ip,
        )
        rows = found.found.values_list("uuid", "label")[:MOST]
        items = [
            Item(batch=batch, position=position, borrower_uuid=uuid, label=label or uuid)
            for position, (uuid, label) in enumerate(rows, 1)
        ]
        Item.objects.bulk_create(items, batch_size=CHUNK)
        append(
            actor,
            "summaries.batch",
            subject_label=f"{len(items):,} summaries",
            detail={"batch": str(batch.pk), "chosen": batch.chosen, "rows": len(items), "options": options},
        )
        batch.job = start(work, by=actor, batch=str(batch.pk))
        batch.save(update_fields=["job"])
    return batch


def draw(batch: Batch) -> Iterator[Item]:
    """Finish each item that still waits, in order; while one is recorded the next ones are drawn."""
    waiting = batch.items.filter(state=Item.State.WAITING).defer("document")
    options = Options.of(QueryDict(batch.options))
    under_way: deque[Callable[[], Item]] = deque()
    threads = ThreadPoolExecutor(settings.DOCUMENT_PROCESSES)
    try:
        with timezone.override(ZoneInfo(batch.zone)):
            for item in list(waiting):
                under_way.append(_begin(threads, batch, item, options))
                if len(under_way) > settings.DOCUMENT_PROCESSES:
                    yield under_way.popleft()()
            while under_way:
                yield under_way.popleft()()
    finally:  # a batch that stops here waits for no document
        threads.shutdown(wait=False, cancel_futures=True)


def _begin(threads: ThreadPoolExecutor, batch: Batch, item: Item, options: Options) -> Callable[[], Item]:
    """Gather one summary and let it be drawn; what this gives back waits for it and records it."""
    try:
        document = _document(batch.actor, item, options)
        stamp = Stamp.new(FORM, at=timezone.now(), by=batch.actor_name)
        drawing = threads.submit(render, document.html(stamp))
    except Record.DoesNotExist:
        return partial(_fail, item, "This borrower is not known here any more.")
    except BROKEN as error:
        logger.exception("The summary of %s could not be laid out.", item.borrower_uuid)
        return partial(
            _fail, item, f"What is known of this borrower could not be laid out ({type(error).__name__})."
        )
    return partial(_finish, batch.actor, item, document, stamp, drawing.result)


def _document(actor: Actor, item: Item, options: Options) -> Document:
    borrower = Record.objects.get(kind=Kind.BORROWER, uuid=item.borrower_uuid)
    accounts = accounts_of(borrower)
    if not options.is_from_copies:
        ask(actor, accounts, deadline=PATIENCE)
    stored = Record.objects.in_bulk([one.pk for one in accounts])
    readings = [Reading(stored[one.pk]) for one in accounts]
    return borrower_document(borrower, readings, options, today=timezone.localdate())


def _finish(actor: Actor, item: Item, document: Document, stamp: Stamp, drawing: Callable[[], bytes]) -> Item:
    """Document, code and audit entry in one transaction, and only for an item that nobody else finished."""
    try:
        drawn = drawing()
    except NotDrawn as reason:
        return _fail(item, str(reason))
    with transaction.atomic():
        is_mine = _settle(
            item,
            Item.State.DONE,
            code=stamp.code,
            file_name=f"{item.position:04}-{document.file_name}",
            document=drawn,
        )
        if is_mine:
            record_print(actor, print_entry(document, stamp), drawn)
    return item


def _fail(item: Item, reason: str) -> Item:
    _settle(item, Item.State.FAILED, reason=reason[:500])
    return item


def _settle(item: Item, state: str, **fields: object) -> bool:
    item.state = state
    return bool(Item.objects.filter(pk=item.pk, state=Item.State.WAITING).update(state=state, **fields))
