"""Lets databases plan well: SQLite does not count what it holds, PostgreSQL does not see what is constant."""

from typing import Any, Final

from django.db import connection
from django.db.models import QuerySet

# Of each index at most so many rows are looked at: more than a list is ever narrowed to by its keys, or they would not
# be used; and as many for each kind of record, or an index of one kind alone would look better than the one in order.
LOOKED_AT: Final = 20_000
# After so many new rows a database holds other numbers than it plans by.
MANY: Final = 10_000
# Beside twenty times as many they change no plan until all is counted in the background, which takes seconds.
LITTLE: Final = 20


def count_anew() -> None:
    """Count again how many rows an index narrows things down to: else SQLite reads a million to find ten of them."""
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute(f"PRAGMA analysis_limit={LOOKED_AT}")
            cursor.execute("ANALYZE")


def is_much(added: int, known: QuerySet[Any]) -> bool:
    """Whether so many new rows among all that are known of their sort are worth counting anew."""
    if connection.vendor != "sqlite" or added < MANY:
        return False
    return known[: added * LITTLE].count() < added * LITTLE


def count_after_migration(apps: Any, schema_editor: Any) -> None:
    """Count again: of an index that is new SQLite knows nothing, and reads the table instead."""
    count_anew()


def leave_the_kind_out(apps: Any, schema_editor: Any) -> None:
    """Make indexes of one kind without the column that is the same in all their rows, after a migration made them.

    What stands in the condition of an index, PostgreSQL does not look for in its columns: it would read all of it.
    """
    if schema_editor.connection.vendor != "postgresql":
        return
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(
            "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'registry_record'"
            " AND indexdef LIKE '%(kind, %' AND indexdef LIKE '%(kind)::text = %'"
        )
        for name, statement in cursor.fetchall():
            cursor.execute(f"DROP INDEX {name}")
            cursor.execute(statement.replace("(kind, ", "(", 1))
