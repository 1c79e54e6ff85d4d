"""How long a write waits: for the disk, all but those that may be lost when the power fails; for the database, as said.

Hides how each database says so. What others wait for on SQLite is the lock of the one writer, which a waiting write
holds.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import DEFAULT_DB_ALIAS, connection, connections


@contextmanager
def hasty() -> Iterator[None]:
    """What is committed in here is safe from a crash of the program, and from a failing machine a moment later."""
    if connection.vendor != "sqlite" or connection.in_atomic_block:
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA synchronous=NORMAL")
        try:
            yield
        finally:
            cursor.execute("PRAGMA synchronous=FULL")


@contextmanager
def fresh_connection(seconds: float) -> Iterator[None]:
    """Use another connection, no statement of which waits longer than that; in a transaction it stays the same one."""
    if connection.in_atomic_block:
        yield
        return
    usual = connections[DEFAULT_DB_ALIAS]
    fresh = usual.copy()
    options = fresh.settings_dict["OPTIONS"]
    if fresh.vendor == "sqlite":
        options["timeout"] = seconds
    else:
        options.pop("pool", None)
        milliseconds = max(round(seconds * 1000), 1)
        limits = f"-c lock_timeout={milliseconds} -c statement_timeout={milliseconds}"
        options["options"] = f"{options.get('options', '')} {limits}"
        # libpq takes whole seconds, two at least; the kernel gives up on a server that is frozen.
        options["connect_timeout"] = max(round(seconds), 2)
        options["tcp_user_timeout"] = milliseconds
    connections[DEFAULT_DB_ALIAS] = fresh
    try:
        yield
    finally:
        connections[DEFAULT_DB_ALIAS] = usual
        fresh.close()
