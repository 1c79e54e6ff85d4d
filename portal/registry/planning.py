"""Keeps what the database plans by in step with how much it holds. PostgreSQL sees to that itself, SQLite does not."""

from typing import Final

from django.db import connection

# Of each index at most so many rows are looked at: more than a list is ever narrowed to by its keys, or they would not
# be used; and as many for each kind of record, or an index of one kind alone would look better than the one in order.
LOOKED_AT: Final = 20_000
# After so many new rows a database holds other numbers than it plans by.
MANY: Final = 10_000


def count_anew() -> None:
    """Count again how many rows an index narrows things down to: else SQLite reads a million to find ten of them."""
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute(f"PRAGMA analysis_limit={LOOKED_AT}")
            cursor.execute("ANALYZE")
