"""What the audit trail costs: appending an entry for good, and checking a million of them.

BENCH_ENTRIES makes the trail shorter.
"""

import os
import statistics
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from tests.bench.database import hurry, own, settle
from tests.bench.memory import watched
from tests.bench.table import Row, at_most

ENTRIES = int(os.environ.get("BENCH_ENTRIES", "1000000"))
APPENDS, ROUND = 500, 100
BATCH = 5_000
START = datetime(2026, 1, 1, tzinfo=UTC)


def rows() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder, own(Path(folder) / "audit.sqlite3") as name:
        sow(ENTRIES)
        return [appending(name), *verifying(name)]


def appending(name: str) -> Row:
    """One entry in a transaction of its own, on the disk when it returns."""
    from portal.audit.chain import append
    from portal.audit.models import Actor

    actor, rounds = Actor.system("bench"), []
    for first in range(0, APPENDS, ROUND):
        took = []
        for number in range(first, first + ROUND):
            started = time.perf_counter()
            append(actor, "borrowers.update", **said(number))
            took.append((time.perf_counter() - started) * 1000)
        rounds.append(statistics.median(took))
    return at_most(f"append an audit entry, {name}, median", rounds, 3)


def verifying(name: str) -> list[Row]:
    """The whole chain, and what it takes of memory beyond what was in use before."""
    from portal.audit.verification import verify

    started = time.perf_counter()
    done, grown = watched(verify)
    seconds = time.perf_counter() - started
    assert (done.entries, done.found) == (ENTRIES + APPENDS, None)
    what = f"verify {done.entries:,} audit entries, {name}"
    return [
        at_most(what, seconds, 60, unit="s"),
        at_most(f"{what}: memory that it takes", grown, 32, unit="MB"),
    ]


def sow(count: int) -> None:
    """A true chain, written in batches past the model."""
    from django.db import connection, transaction

    from portal.audit.chain import HASH_FORMAT, HASHED_FIELDS, seal_of
    from portal.audit.guard import FIRST
    from portal.audit.models import Entry

    fields = [Entry._meta.get_field(name) for name in HASHED_FIELDS[HASH_FORMAT]]
    columns = ", ".join(["id", *(field.column for field in fields), "hash"])
    marks = ", ".join(["%s"] * (len(fields) + 2))
    last = FIRST
    hurry()
    for start in range(0, count, BATCH):
        batch = []
        for number in range(start, min(start + BATCH, count)):
            values = entry(number) | {"previous_hash": last, "hash_format": HASH_FORMAT}
            last = seal_of(values)
            stored = [field.get_db_prep_save(values[field.attname], connection) for field in fields]
            batch.append([number + 1, *stored, last])
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.executemany(f"INSERT INTO audit_entry ({columns}) VALUES ({marks})", batch)
    settle()


def entry(number: int) -> dict[str, Any]:
    """The fields of an entry such as a change of a profile leaves."""
    return {
        "at": START + timedelta(seconds=7 * number, microseconds=number),
        "actor_id": number % 50,
        "actor_name": f"Servicer {number % 50}",
        "actor_role": "servicer",
        "ip": f"10.0.{number % 200}.{number % 250}",
        "user_agent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36",
        "request_id": f"r-{number:012x}",
        "action": "borrowers.update",
        "phase": "attempt" if number % 2 else "outcome",
        **said(number),
    }


def said(number: int) -> dict[str, Any]:
    """What such an entry says."""
    uuid = str(UUID(int=number % 10_000))
    return {
        "intent_id": UUID(int=number),
        "result": "confirmed",
        "subject_kind": "borrower",
        "subject_uuid": uuid,
        "subject_label": f"Borrower {number % 10_000} LLC",
        "borrower_uuid": uuid,
        "reason": "Asked by phone, identity checked",
        "changes": {"phone": ["(512) 555-0143", f"(512) 555-{number % 10_000:04}"]},
        "detail": {"request": {"phone": f"512555{number % 10_000:04}"}, "duration_ms": number % 900},
    }
