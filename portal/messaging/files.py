"""Messages as the lines of a file: the columns of the list, what they lead to, and each message as it was received."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from portal.messaging.explorer import Explorer
from portal.messaging.links import Row, rows_of
from portal.messaging.models import Message
from portal.messaging.told import read

Batches = Iterable[Sequence[Message]]
COLUMNS = [
    *("Message", "Recorded", "Event", "Message status", "Product", "Amount", "Payment status"),
    *("Borrower", "Borrower identifier", "Repayment", "Account", "Bank account", "As received"),
]


def cells(row: Row) -> list[Any]:
    """A message as a line, under :data:`COLUMNS`."""
    message, told = row.message, read(row.message)
    created = told.created_at
    owner, account = row.borrower, row.account
    return [
        *(told.uuid, created.text if created else "", message.event, message.status, message.product),
        *(message.amount, message.payment_status, owner and str(owner), owner and owner.uuid),
        *(message.subject_uuid, account and account.uuid, message.bank_account),
        msgspec.Raw(message.body.encode()),
    ]


def table(explorer: Explorer, batches: Batches) -> Iterator[list[Any]]:
    """The lines; the last one says so where the service failed before the end."""
    number = 0
    for batch in batches:
        number += len(batch)
        yield from map(cells, rows_of(batch))
    if explorer.failure:
        yield [_ending(explorer, number), *[None] * (len(COLUMNS) - 1)]


def _ending(explorer: Explorer, number: int) -> str:
    return (
        f"INCOMPLETE: the lending service failed ({explorer.failure and explorer.failure.message}). "
        f"This file has {number:,} of {explorer.total_words} messages; the others are missing."
    )
