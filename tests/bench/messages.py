"""Invents a year of webhook messages as the service would list them, with the rows that the portal stores.

Other processes make the rows, because decoding and indexing a message takes longer than inserting it.
"""

import json
import os
import random
import uuid
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from multiprocessing import get_context
from typing import Any

import django
from django.db import connection

NOW = datetime(2026, 11, 20, tzinfo=UTC)
YEAR = 365 * 86_400
STATES = (["SUCCEEDED", "SCHEDULED", "FAILED", "FAILED_AFTER_SUCCESS"], [80, 15, 4, 1])
DELIVERIES = (["SUCCESS", "FAILED", "PENDING"], [95, 4, 1])
PRODUCTS = ["LOAN", "LOC", "BUILD_CREDIT"]
BANKS = 20_000
BUSY = 0.02
"""The share of payments that come from one bank account."""


def row_batches(parts: Sequence[range], total: int) -> Iterator[list[list[Any]]]:
    """Yield the values of all columns for each part of a year's messages, oldest first."""
    if parts:
        with get_context("spawn").Pool(min(os.cpu_count() or 1, len(parts)), django.setup) as pool:
            yield from pool.imap(partial(_rows, total=total), parts)


def bodies(numbers: range, total: int) -> Iterator[dict[str, Any]]:
    """Yield the messages with these numbers, out of ``total`` in the year; they are always the same."""
    chance = random.Random(numbers.start)
    for number in numbers:
        at = NOW - timedelta(seconds=(total - number) * YEAR // total)
        (state,) = chance.choices(*STATES)
        (status,) = chance.choices(*DELIVERIES)
        yield {
            "uuid": _uuid(chance),
            "event": f"payment.{state.lower()}",
            "payload": _payment(chance, at, state),
            "status": status,
            "created_at": f"{at:%Y-%m-%d %H:%M:%S} UTC",
        }


@cache
def bank(number: int) -> str:
    """Return the ID of a bank account; the first one has many payments."""
    return _uuid(random.Random(number))


def _payment(chance: random.Random, at: datetime, state: str) -> dict[str, Any]:
    return {
        "uuid": _uuid(chance),
        "product": chance.choice(PRODUCTS),
        "payment_type": "SINGLE_PAYMENT",
        "effective_date": f"{at:%Y-%m-%d}",
        "amount": chance.randint(1_000, 500_000) / 100,
        **dict.fromkeys(("principal", "interest", "fees", "suspense", "ending_balance")),
        "should_commit_to_servicing": True,
        "borrower_bank_account_uuid": bank(0 if chance.random() < BUSY else chance.randrange(1, BANKS)),
        "ach_batch_id": f"{at:%Y%m%d}",
        "ach_id": _uuid(chance)[-12:],
        "completion_date": None,
        "error_description": "",
        "initiation_date": f"{at:%Y-%m-%d %H:%M:%S} PST",
        "status": state,
    }


def _uuid(chance: random.Random) -> str:
    return str(uuid.UUID(int=chance.getrandbits(128), version=4))


def _rows(numbers: range, total: int) -> list[list[Any]]:
    """Return rows of database values in order of time."""
    from portal.messaging.store import message_row
    from servicing import Message, codec

    listed = codec.read_list(Message, codec.parse(json.dumps(list(bodies(numbers, total)))))
    rows = sorted((message_row(message) for message in listed), key=lambda row: row.recorded_at)
    fields = [field for field in type(rows[0])._meta.concrete_fields if not field.primary_key]
    return [
        [field.get_db_prep_save(getattr(row, field.attname), connection) for field in fields] for row in rows
    ]
