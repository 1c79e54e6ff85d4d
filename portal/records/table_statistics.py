"""Statistics for query planning, which SQLite updates only on request."""

from typing import Any, Final

from django.db import connection
from django.db.models import QuerySet

# The rows of each index that SQLite samples. It must exceed the number of keys that a list is ever limited to, or
# their index would not be used; and an index of one kind must not look better than one of all kinds.
SAMPLED_ROWS: Final = 20_000
# After this many new rows the statistics are outdated,
ANALYZE_AFTER_ROWS: Final = 10_000
# unless there are already this many times as many; then the nightly job is soon enough.
NEGLIGIBLE_RATIO: Final = 20


def analyze() -> None:
    """Update SQLite's statistics; without them it reads a million rows to find ten."""
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute(f"PRAGMA analysis_limit={SAMPLED_ROWS}")
            cursor.execute("ANALYZE")
            # With fewer rows SQLite estimates a kind by the average of all kinds. For the most frequent kind it would
            # then read all rows instead of an index that suffices.
            cursor.execute(
                "UPDATE sqlite_stat1 SET stat = substr(stat, 1, instr(stat, ' ')) || %s"
                " WHERE idx = 'one_record_per_uuid'",
                [f"{SAMPLED_ROWS + 1} 1"],
            )
            cursor.execute("ANALYZE sqlite_schema")


def needs_analyze(added: int, existing: QuerySet[Any]) -> bool:
    """Whether this many new rows besides the existing ones make the statistics wrong."""
    if connection.vendor != "sqlite" or added < ANALYZE_AFTER_ROWS:
        return False
    return existing[: added * NEGLIGIBLE_RATIO].count() < added * NEGLIGIBLE_RATIO
