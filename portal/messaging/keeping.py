"""Keeps messages as they were received: each once, whoever reads it, however often it is told.

Hides what filters need of a message, and where a message whose time is not certain stands among the others.
"""

import hashlib
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

import msgspec
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from portal.messaging.facts import search_text
from portal.messaging.models import PLACES, Message, key_from
from portal.registry.memory import IDENTIFIER, TOO_MUCH
from servicing import Message as Told
from servicing.values import exact

ONE_DAY: Final = timedelta(days=1)
_ENCODER = msgspec.json.Encoder(decimal_format="number")


def keep(messages: Iterable[Told], *, day: date | None = None) -> set[str]:
    """Save those that are not saved yet; their identifiers. ``day`` is the service's day, where it is known."""
    rows = {row.uuid: row for row in (row_of(message, day) for message in messages)}
    with transaction.atomic():
        found = list(Message.objects.filter(uuid__in=rows).values_list("uuid", "day", "is_placed", "gone_at"))
        stored = {uuid: its_day if is_placed else None for uuid, its_day, is_placed, _ in found}
        if back := [uuid for uuid, *_, gone_at in found if gone_at]:
            Message.objects.filter(uuid__in=back).update(gone_at=None)
        moved = [uuid for uuid, its_day in stored.items() if day and its_day != day]
        if moved:  # It was a guess, and now the service told the day.
            Message.objects.filter(uuid__in=moved).delete()
        _add([row for uuid, row in rows.items() if uuid not in stored or uuid in moved])
    return rows.keys() - stored


def row_of(message: Told, day: date | None = None) -> Message:
    """A message as it is kept."""
    payload = message.payload if isinstance(message.payload, dict) else {}
    at = placed(message, day)
    amount = exact(payload.get("amount"))
    return Message(
        id=key_from(at) + _salt(message.uuid),
        uuid=kept_as(message.uuid),
        event=_word(message.event, 100),
        status=_word(message.status, 40),
        day=day or at.astimezone(service_zone()).date(),
        is_placed=bool(day or (message.created_at and message.created_at.at)),
        product=_word(payload.get("product"), 40),
        payment_status=_word(payload.get("status"), 40),
        amount=None if amount is None or abs(amount) >= TOO_MUCH else round(amount, 4),
        subject_uuid=_word(payload.get("uuid"), 64),
        bank_account=_word(payload.get("borrower_bank_account_uuid"), 64),
        body=_ENCODER.encode(message.raw).decode(),
        search_text=search_text(message.raw),
    )


def kept_as(uuid: str) -> str:
    """Under which identifier a message is kept: its own, or one made from what no address and no index can hold."""
    return uuid if IDENTIFIER.fullmatch(uuid) else f"odd-{_digest(uuid, 16).hex()}"


def service_zone() -> ZoneInfo:
    """The zone in which the service counts its days."""
    return ZoneInfo(settings.SERVICING_TIME_ZONE)


def today() -> date:
    """The service's day, by our clock."""
    return timezone.now().astimezone(service_zone()).date()


def placed(message: Told, day: date | None) -> datetime:
    """When it was recorded: what is certain, else what its clock shows in the service's zone; never outside its day."""
    told = message.created_at
    at = (told and told.at) or _clock(told.text if told else "") or _end(day) or timezone.now()
    if day and at.astimezone(service_zone()).date() != day:
        return _end(day) or at
    return at


def _clock(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text[:19]).replace(tzinfo=service_zone())
    except ValueError:
        return None


def _end(day: date | None) -> datetime | None:
    if not day:
        return None
    return datetime.combine(day + ONE_DAY, time.min, service_zone()).astimezone(UTC) - timedelta(seconds=1)


def _salt(uuid: str) -> int:
    return int.from_bytes(_digest(uuid, 8)) >> (64 - PLACES)


def _digest(uuid: str, size: int) -> bytes:
    return hashlib.blake2b(uuid.encode("utf-8", "surrogatepass"), digest_size=size).digest()


def _word(value: Any, longest: int) -> str:
    return value.replace("\0", "\ufffd")[:longest] if isinstance(value, str) else ""


def _add(rows: Sequence[Message]) -> None:
    """Insert; a row whose key is taken by another message of the same second steps aside."""
    waiting = sorted(rows, key=lambda row: row.id)  # SQLite's table of trigrams is slow in any other order.
    while waiting:
        Message.objects.bulk_create(waiting, ignore_conflicts=True)
        uuids = [row.uuid for row in waiting]
        stored = set(Message.objects.filter(uuid__in=uuids).values_list("uuid", flat=True))
        waiting = [row for row in waiting if row.uuid not in stored]
        for row in waiting:
            row.id += 1
