"""Messages as files: the columns of a table for people, and the messages themselves for programs."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from django.http import StreamingHttpResponse
from django.utils import timezone

from portal.messaging.explorer import Explorer
from portal.messaging.links import Row, rows_of
from portal.messaging.models import Message
from portal.messaging.told import read

Batches = Iterable[Sequence[Message]]
COLUMNS = [
    *("Message", "Recorded", "Event", "Message status", "Product", "Amount", "Payment status"),
    *("Borrower", "Borrower identifier", "Repayment", "Account", "Bank account", "Payload"),
]


def cells(row: Row) -> list[Any]:
    """A message as a line of a table, under :data:`COLUMNS`."""
    message, told = row.message, read(row.message)
    created = told.created_at
    owner, account = row.borrower, row.account
    return [
        *(told.uuid, created.text if created else "", message.event, message.status, message.product),
        *(message.amount, message.payment_status, owner and str(owner), owner and owner.uuid),
        *(message.subject_uuid, account and account.uuid, message.bank_account, message.body),
    ]


def table(explorer: Explorer, batches: Batches) -> Iterator[list[Any]]:
    """The lines of a table; the last one says so where the service failed before the end."""
    number = 0
    for batch in batches:
        number += len(batch)
        yield from map(cells, rows_of(batch))
    if explorer.failure:
        yield [_ending(explorer, number)]


def lines(explorer: Explorer, batches: Batches) -> StreamingHttpResponse:
    """Each message as it was received, one a line; the last one says so where the service failed before the end."""
    answer = StreamingHttpResponse(_texts(explorer, batches), content_type="application/jsonl")
    answer["Content-Disposition"] = f'attachment; filename="messages-{timezone.localdate()}.jsonl"'
    answer["Cache-Control"] = "no-store"
    return answer


def _texts(explorer: Explorer, batches: Batches) -> Iterator[str]:
    number = 0
    for batch in batches:
        number += len(batch)
        yield from (f"{message.body}\n" for message in batch)
    if explorer.failure:
        yield json.dumps({"incomplete": _ending(explorer, number)}) + "\n"


def _ending(explorer: Explorer, number: int) -> str:
    return (
        f"INCOMPLETE: the lending service failed ({explorer.failure and explorer.failure.message}). "
        f"This file has {number:,} of {explorer.total_words} messages; the others are missing."
    )
