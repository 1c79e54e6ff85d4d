"""What messages tell of payments, as plain rows: for the pages of a repayment, a loan and a line."""

from typing import Final

from portal.messaging.models import Message
from portal.messaging.query import Found
from portal.payments.life import Telling
from portal.registry.models import Kind, Record
from servicing import Message as Told
from servicing import Repayment, ServicingError, codec

MOST: Final = 200
"""So many messages are told of at once, the newest."""
NEWEST: Final = 10
"""So many of them on the page of a loan or line; and of a borrower."""


def messages_of(repayment_uuid: str) -> list[Telling]:
    """What messages tell of this repayment, newest first."""
    return [telling(message) for message in Message.objects.filter(subject_uuid=repayment_uuid)[:MOST]]


def messages_about(account: Record) -> list[Telling]:
    """What messages tell of the repayments of a loan or line, newest first."""
    payments = Record.objects.filter(parent_uuid=account.uuid, kind=Kind.REPAYMENT).values("uuid")
    return [telling(message) for message in Message.objects.filter(subject_uuid__in=payments)[:NEWEST]]


def messages_of_borrower(borrower: Record) -> list[Telling]:
    """What messages tell of anything of theirs, newest first."""
    return [telling(message) for message in Found({"borrower": borrower}).page(NEWEST)]


def telling(message: Message) -> Telling:
    """One message as a plain row."""
    created, payment = read(message).created_at, repayment_in(message)
    return Telling(
        event=message.event,
        status=message.payment_status,
        at=message.at,
        sent=created.text if created else "",
        url=message.get_absolute_url(),
        reason=(payment and payment.error_description) or "",
        delivery=message.status,
        payload=payment,
    )


def read(message: Message) -> Told:
    """The message as the library reads it."""
    return codec.decode(Told, message.body)


def repayment_in(message: Message) -> Repayment | None:
    """The repayment that a payment event carries; other payloads carry none."""
    if not message.event.startswith("payment."):
        return None
    try:
        return codec.read(Repayment, read(message).payload)
    except ServicingError:
        return None
