"""Keeps what the database plans by in step with how much it holds. PostgreSQL sees to that itself, SQLite does not."""

from django.db import connection


def count_anew() -> None:
    """Count again how many rows an index narrows things down to: else SQLite reads a million to find ten of them.

    Each index by itself, so that whoever writes waits for one of them at most. Looking at some rows only is no way: all
    of those could be of one kind, and SQLite would think that a kind has no more.
    """
    if connection.vendor != "sqlite":
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT name FROM sqlite_master WHERE type = 'index'")
        for (name,) in cursor.fetchall():
            cursor.execute(f"ANALYZE {connection.ops.quote_name(name)}")
