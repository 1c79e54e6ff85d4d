"""Which writes wait until the disk has them: all of them, but for those that may be lost when the power fails.

Hides SQLite's way of saying so. What others wait for is the lock of the one writer, which a waiting write holds.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection


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
