"""What messages tell of payments, as plain rows: for the pages of a repayment, a loan and a line."""

from collections.abc import Iterable
from typing import Final

from portal.life import Telling
from portal.messaging.models import Message
from servicing import Message as Told
from servicing import Repayment, ServicingError, codec

MOST: Final = 200
"""So many messages are told of at once, the newest."""


def tellings(repayment_uuids: Iterable[str]) -> dict[str, list[Telling]]:
    """The messages about each of these repayments, newest first; of a repayment without any nothing."""
    wanted = {uuid for uuid in repayment_uuids if uuid}
    found: dict[str, list[Telling]] = {}
    for message in Message.objects.filter(subject_uuid__in=wanted)[:MOST] if wanted else ():
        found.setdefault(message.subject_uuid, []).append(telling(message))
    return found


def telling(message: Message) -> Telling:
    """One message as a plain row."""
    told, payment = read(message), repayment_in(message)
    return Telling(
        event=message.event,
        status=message.payment_status,
        at=message.at,
        sent=told.created_at.text if told.created_at else "",
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
