"""Saves messages, each once, however often they are read: as last listed, with the payload that was first received.

Hides which columns filters need, and the place in time of a message with an uncertain time.
"""

import hashlib
from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

import msgspec
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from portal.messaging.models import Message
from portal.messaging.news import queue_reads
from portal.messaging.text import comparable_payload, search_text
from portal.records.figures import stored_amount
from portal.records.store import IDENTIFIER
from servicing import Message as RemoteMessage
from servicing import codec
from servicing.masking import masked_text
from servicing.rules import known_spelling
from servicing.values import decimal_or_none

ONE_DAY: Final = timedelta(days=1)
MAX_NAME_CHARACTERS: Final = 100
BATCH_SIZE: Final = 50
"""The messages changed by one statement."""
YEARS: Final = range(1970, 2101)
"""The years in which messages can be put in order of time."""
_CHANGING: Final = [
    *(
        "event",
        "status",
        "recorded_at",
        "recorded_text",
        "day",
        "is_placed",
        "product",
        "payment_status",
        "amount",
    ),
    *("subject_uuid", "bank_account", "body", "changed_payload", "payload", "search_text"),
]
_ENCODER = msgspec.json.Encoder(decimal_format="number")


def save_messages(messages: Iterable[RemoteMessage], *, day: date | None = None) -> set[str]:
    """Save messages as they are now and return the IDs of new ones. ``day`` is the service's day, if known."""
    by_uuid = {storage_uuid(message.uuid): message for message in messages}
    with transaction.atomic():
        found = Message.objects.defer("payload", "search_text").filter(uuid__in=by_uuid)
        stored = {message.uuid: message for message in found}
        if back := [uuid for uuid, message in stored.items() if message.gone_at]:
            Message.objects.filter(uuid__in=back).update(gone_at=None)
        rows, changed = [], []
        for uuid, message in by_uuid.items():
            old = stored.get(uuid)
            if old is None:
                rows.append(message_row(message, day))
            elif (day and (old.day != day or not old.is_placed)) or differs(message, old):
                changed.append(_later_row(message, old, day))
        # Lists are newest first. Of the same second, the older one gets the lower key; and all writers have one order.
        rows.reverse()
        rows.sort(key=lambda row: row.recorded_at)
        Message.objects.bulk_create(rows, ignore_conflicts=True)
        Message.objects.bulk_update(changed, _CHANGING, batch_size=BATCH_SIZE)
        queue_reads(rows)
    return {row.uuid for row in rows}


def differs(message: RemoteMessage, saved: Message) -> bool:
    """Whether the service lists the message otherwise than when it was saved."""
    if saved.changed_payload is None and _ENCODER.encode(message.raw).decode() == saved.body:
        return False
    known, listed = codec.parse(saved.body), message.raw
    last_payload = (
        known.get("payload") if saved.changed_payload is None else codec.parse(saved.changed_payload)
    )
    return bool(listed | {"payload": listed.get("payload")} != known | {"payload": last_payload})


def _later_row(message: RemoteMessage, saved: Message, day: date | None) -> Message:
    """The row of a later reading. Its first payload stays; another one is kept beside it."""
    first, later = codec.parse(saved.body).get("payload"), message.raw.get("payload")
    row = message_row(codec.read(RemoteMessage, message.raw | {"payload": first}), day)
    row.changed_payload = None if later == first else _ENCODER.encode(later).decode()
    row.pk, row.stored_at = saved.pk, saved.stored_at
    if day is None:
        row.day, row.is_placed = saved.day, saved.is_placed
        if row.recorded_text == saved.recorded_text:
            row.recorded_at = saved.recorded_at
    return row


def message_row(message: RemoteMessage, day: date | None = None) -> Message:
    payload = message.payload if isinstance(message.payload, dict) else {}
    recorded_at = _recorded_at(message, day)
    amount = decimal_or_none(payload.get("amount"))
    return Message(
        uuid=storage_uuid(message.uuid),
        event=_text(message.event, 100),
        status=known_spelling(_text(message.status, 40)),
        recorded_at=recorded_at,
        recorded_text=message.created_at.text.replace("\0", "\ufffd") if message.created_at else "",
        day=day or recorded_at.astimezone(service_zone()).date(),
        is_placed=bool(day or (message.created_at and message.created_at.at)),
        product=known_spelling(_text(payload.get("product"), 40)),
        payment_status=known_spelling(_text(payload.get("status"), 40)),
        amount=stored_amount(amount),
        subject_uuid=_text(payload.get("uuid"), 64),
        bank_account=_text(payload.get("borrower_bank_account_uuid"), 64),
        body=_ENCODER.encode(message.raw).decode(),
        payload=comparable_payload(message.payload),
        search_text=search_text(message.raw),
    )


def storage_uuid(uuid: str) -> str:
    """The ID under which a message is saved: its own, or a digest if no address or index can hold it."""
    return uuid if IDENTIFIER.fullmatch(uuid) else f"odd-{_digest(uuid, 16).hex()}"


def describe_unusable(raw: Any) -> str:
    """A short name of a message that has no usable ID, from what else it says."""
    if isinstance(raw, dict):
        words = [
            raw[name].strip() for name in ("event", "created_at", "uuid") if isinstance(raw.get(name), str)
        ]
        return masked_text(", ".join(filter(None, words))[:MAX_NAME_CHARACTERS]) or "an object without event"
    return masked_text(_ENCODER.encode(raw).decode()[:MAX_NAME_CHARACTERS])


def service_zone() -> ZoneInfo:
    """The time zone of the service's days."""
    return ZoneInfo(settings.SERVICING_TIME_ZONE)


def service_today() -> date:
    """The service's current day, by our clock."""
    return timezone.now().astimezone(service_zone()).date()


def _recorded_at(message: RemoteMessage, day: date | None) -> datetime:
    """The certain time, else the clock time taken in the service's zone; never outside the service's day."""
    sent = message.created_at
    at = sent and sent.guess(service_zone())
    at = at if at and at.year in YEARS else _end_of(day) or timezone.now()
    if day and at.astimezone(service_zone()).date() != day:
        return _end_of(day) or at
    return at


def _end_of(day: date | None) -> datetime | None:
    if not day:
        return None
    return datetime.combine(day + ONE_DAY, time.min, service_zone()).astimezone(UTC) - timedelta(seconds=1)


def _digest(uuid: str, size: int) -> bytes:
    return hashlib.blake2b(uuid.encode("utf-8", "surrogatepass"), digest_size=size).digest()


def _text(value: Any, max_length: int) -> str:
    return value.replace("\0", "\ufffd")[:max_length] if isinstance(value, str) else ""
