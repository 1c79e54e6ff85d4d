"""Statistics that databases plan queries by: SQLite updates them only when asked."""

from typing import Any, Final

from django.db import connection
from django.db.models import QuerySet

# How many rows of each index SQLite samples. It must exceed what a list is ever narrowed to by keys, or their index
# would not be used; and an index of one kind must not look better than one of all kinds.
SAMPLED_ROWS: Final = 20_000
# After so many new rows the statistics are out of date,
ANALYZE_AFTER_ROWS: Final = 10_000
# unless there are this many times as many already: then the nightly job is soon enough.
NEGLIGIBLE_RATIO: Final = 20


def analyze() -> None:
    """Update the statistics of SQLite; without them it reads a million rows to find ten."""
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute(f"PRAGMA analysis_limit={SAMPLED_ROWS}")
            cursor.execute("ANALYZE")


def needs_analyze(added: int, existing: QuerySet[Any]) -> bool:
    """Whether so many new rows, beside those that exist, make the statistics wrong."""
    if connection.vendor != "sqlite" or added < ANALYZE_AFTER_ROWS:
        return False
    return existing[: added * NEGLIGIBLE_RATIO].count() < added * NEGLIGIBLE_RATIO
