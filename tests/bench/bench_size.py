"""Measures the bytes of one row with its indexes, and calculates the total of many rows."""

import tempfile
from pathlib import Path

from tests.bench import bench_registry, messages
from tests.bench.database import benchmark_database
from tests.bench.generate import generate
from tests.bench.table import Row, at_most

MESSAGES, BORROWERS = min(100_000, messages.MESSAGES), min(20_000, bench_registry.BORROWERS)
"""The numbers of measured rows."""
BORROWER_BYTES = 6_000
ANSWERS = (
    "the answers are 1.8 kB of it, for a borrower’s holds its key people and so do their own rows; the text that search"
    " reads takes 0.9 kB on SQLite and 1.8 kB on PostgreSQL, the indexes of IDs 0.6 kB. Indexes of one kind each took"
    " 1.1 kB away on SQLite and 2.4 kB on PostgreSQL; SQLite leaves an eighth of the pages of records empty."
)
MANY_MESSAGES, MANY_BORROWERS = 100_000_000, 10_000_000


def rows() -> list[Row]:
    sizes = []
    with tempfile.TemporaryDirectory() as folder, benchmark_database(Path(folder) / "size.sqlite3") as engine:
        empty = database_bytes()
        generate(messages=MESSAGES)
        sizes += size_rows(f"message, {engine}", (database_bytes() - empty) / MESSAGES, MANY_MESSAGES, None)
        before = database_bytes()
        generate(borrowers=BORROWERS)
        each = (database_bytes() - before) / BORROWERS
        sizes += size_rows(
            f"borrower with people and accounts, {engine}", each, MANY_BORROWERS, BORROWER_BYTES
        )
    return sizes


def size_rows(name: str, each: float, many: int, limit: int | None) -> list[Row]:
    return [
        at_most(f"one {name}", each, limit, unit="bytes", why=ANSWERS),
        at_most(f"{many:,} times that", each * many / 10**9, None, unit="GB"),
    ]


def database_bytes() -> int:
    """Return the size of the whole database with its indexes."""
    from django.db import connection

    queries = {
        "sqlite": "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size",
        "postgresql": "SELECT pg_database_size(current_database())",
    }
    with connection.cursor() as cursor:
        cursor.execute(queries[connection.vendor])
        (number,) = cursor.fetchone()
    return int(number)
