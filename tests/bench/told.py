"""A year of webhook messages as the service tells them, written past the sync into a table of their own.

Hides how a million are sown in minutes: other processes make the rows, and indexes are built when all are there.
Run by itself it does no more than that, for the folder that BENCH_KEPT names.
"""

import json
import os
import random
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tests.bench.database import hurry, own, settle

MESSAGES = int(os.environ.get("BENCH_MESSAGES", "1000000"))
NOW = datetime(2026, 11, 20, tzinfo=UTC)
YEAR = 365 * 86_400
BATCH = 5_000
STATES = (["SUCCEEDED", "SCHEDULED", "FAILED", "FAILED_AFTER_SUCCESS"], [80, 15, 4, 1])
DELIVERIES = (["SUCCESS", "FAILED", "PENDING"], [95, 4, 1])
PRODUCTS = ["LOAN", "LOC", "BUILD_CREDIT"]
BANKS = 20_000
BUSY = 0.02
"""So large a part of all payments comes from one bank account."""


@contextmanager
def sowed() -> Iterator[str]:
    """A database that holds all of them, sown unless it was kept; the name of its engine."""
    with tempfile.TemporaryDirectory() as folder, own(Path(folder) / "messages.sqlite3") as engine:
        from portal.messaging.models import Message

        if not Message.objects.exists():
            sow(MESSAGES)
        yield engine


def sow(number: int) -> None:
    """Fill the table with so many messages, the oldest first, as they come over a year."""
    from django.db import connection

    from portal.messaging import search_index
    from portal.messaging.models import Message

    hurry()
    indexes = Message._meta.indexes
    fill = search_index.rebuild if connection.vendor == "sqlite" else search_index.create
    with connection.schema_editor() as editor:
        search_index.drop(None, editor)
        for index in indexes:
            editor.remove_index(Message, index)
    ranges = [range(start, min(start + BATCH, number)) for start in range(0, number, BATCH)]
    with get_context("spawn").Pool(os.cpu_count(), _set_up) as pool:
        for rows in pool.imap(_rows, [(part, number) for part in ranges]):
            _insert(rows)
    with connection.schema_editor() as editor:
        for index in indexes:
            editor.add_index(Message, index)
        fill(None, editor)
    settle()


def bodies(numbers: range, of: int) -> Iterator[dict[str, Any]]:
    """Messages number so and so, of so many in the year, always the same."""
    chance = random.Random(numbers.start)
    for number in numbers:
        at = NOW - timedelta(seconds=(of - number) * YEAR // of)
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
    """The identifier of a bank account; the first one is the busy one."""
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


def _set_up() -> None:
    import django

    django.setup()


def _rows(asked: tuple[range, int]) -> list[list[Any]]:
    """Rows as the database takes them, in the order of their keys."""
    from django.db import connection

    from portal.messaging.keeping import row_of
    from portal.messaging.models import Message as Kept
    from servicing import Message, codec

    told = codec.read_list(Message, codec.parse(json.dumps(list(bodies(*asked)))))
    kept = sorted((row_of(one) for one in told), key=lambda row: row.pk)
    fields = Kept._meta.concrete_fields
    return [
        [field.get_db_prep_save(getattr(row, field.attname), connection) for field in fields] for row in kept
    ]


def _insert(rows: list[list[Any]]) -> None:
    from django.db import connection, transaction

    from portal.messaging.models import Message

    names = [field.column for field in Message._meta.concrete_fields]
    marks = ", ".join(["%s"] * len(names))
    with transaction.atomic(), connection.cursor() as cursor:
        statement = f"INSERT INTO messaging_message ({', '.join(names)}) VALUES ({marks})"
        cursor.executemany(statement, rows)


if __name__ == "__main__":
    with sowed():
        pass
