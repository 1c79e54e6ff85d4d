"""Messages as files: the columns of a table for people, and the messages themselves for programs."""

from collections.abc import Iterable, Sequence
from typing import Any

from django.http import StreamingHttpResponse
from django.utils import timezone

from portal.messaging.links import Row
from portal.messaging.models import Message
from portal.messaging.told import read

COLUMNS = [
    *("Message", "Recorded", "Event", "Message status", "Product", "Amount", "Payment status"),
    *("Borrower", "Borrower identifier", "Repayment", "Account", "Bank account", "Payload"),
]


def cells(row: Row) -> list[Any]:
    """A message as a line of a table, under :data:`COLUMNS`."""
    message, created = row.message, read(row.message).created_at
    owner, account = row.borrower, row.account
    return [
        *(message.uuid, created.text if created else "", message.event, message.status, message.product),
        *(message.amount, message.payment_status, owner and str(owner), owner and owner.uuid),
        *(message.subject_uuid, account and account.uuid, message.bank_account, message.body),
    ]


def lines(batches: Iterable[Sequence[Message]]) -> StreamingHttpResponse:
    """Each message as it was received, one a line."""
    texts = (f"{message.body}\n" for batch in batches for message in batch)
    answer = StreamingHttpResponse(texts, content_type="application/jsonl")
    answer["Content-Disposition"] = f'attachment; filename="messages-{timezone.localdate()}.jsonl"'
    answer["Cache-Control"] = "no-store"
    return answer
