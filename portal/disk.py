"""Which writes wait until the disk has them, what happens while the database takes none, and who else uses it.

All wait for the disk but those that may be lost when the power fails. Hides SQLite's way of saying so, and how each
database says that it is locked, full, read-only or away. What others wait for on SQLite is the lock of the one writer,
which a waiting write holds.
"""

import fcntl
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from django.db import (
    DEFAULT_DB_ALIAS,
    DatabaseError,
    Error,
    InterfaceError,
    OperationalError,
    connection,
    connections,
)

T = TypeVar("T")

OPTIONAL_WAIT_SECONDS = 1.0
"""How long a write that may be left out waits for a lock."""
REST_SECONDS = 4.0
"""For how long such writes wait for nothing once the database took none."""
# Busy, locked, out of memory, read-only, input or output failed, full, cannot be opened, locking protocol.
_SQLITE_CODES = {5, 6, 7, 8, 10, 13, 14, 15}
# Connection, read-only, deadlock, resources and disk, lock not available, ended by somebody, system.
_POSTGRES_STATES = ("08", "25006", "40", "53", "55P03", "57", "58")

# Settings name the sessions of each process, so that this one's own pool, and somebody's psql, do not count.
_OTHER_SESSIONS = """SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
    AND application_name LIKE 'servicing-%' AND application_name <> current_setting('application_name')"""

logger = logging.getLogger(__name__)
_rest_ends_at = 0.0
# Open files whose locks last as long as this process.
_marks: list[int] = []


@contextmanager
def hasty() -> Iterator[None]:
    """What is committed in here is safe from a crash of the program, and from a failing machine a moment later."""
    if connection.vendor != "sqlite" or connection.in_atomic_block:
        yield
        return
    wait = 0 if time.monotonic() < _rest_ends_at else OPTIONAL_WAIT_SECONDS
    usual = connection.settings_dict["OPTIONS"]["timeout"]
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA synchronous=NORMAL")
        cursor.execute(f"PRAGMA busy_timeout={round(wait * 1000)}")
        try:
            yield
        except DatabaseError as error:
            if is_unavailable(error):
                rest_from_writes()
            raise
        finally:
            cursor.execute("PRAGMA synchronous=FULL")
            cursor.execute(f"PRAGMA busy_timeout={round(usual * 1000)}")


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


def write_if_possible(write: Callable[[], T]) -> T | None:
    """Do a write that a page can do without; ``None`` where the database takes none now."""
    if connection.in_atomic_block:
        return write()
    if connection.vendor != "sqlite" and time.monotonic() < _rest_ends_at:
        return None
    try:
        with hasty(), _short_lock_wait():
            return write()
    except Error as error:
        if not is_unavailable(error):
            raise
        rest_from_writes()
        logger.warning("The database takes no writes at the moment: %s", str(error).partition("\n")[0])
        return None


def rest_from_writes() -> None:
    """Let the next writes that may be left out wait for nothing: the database just took none."""
    global _rest_ends_at
    _rest_ends_at = time.monotonic() + REST_SECONDS


@contextmanager
def _short_lock_wait() -> Iterator[None]:
    """On PostgreSQL; SQLite's one lock is waited for as briefly in any case."""
    if connection.vendor != "postgresql":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute(f"SET lock_timeout = {round(OPTIONAL_WAIT_SECONDS * 1000)}")
        try:
            yield
        finally:
            with suppress(Error):  # A connection that is gone takes it along.
                cursor.execute("RESET lock_timeout")


def is_unavailable(error: BaseException | None) -> bool:
    """Whether the database is away, locked, full or read-only; what is asked of it may be in order."""
    if isinstance(error, InterfaceError):
        return True
    cause = getattr(error, "__cause__", None)
    if code := getattr(cause, "sqlite_errorcode", None):
        return code & 0xFF in _SQLITE_CODES
    if state := getattr(cause, "sqlstate", None):
        return str(state).startswith(_POSTGRES_STATES)
    return isinstance(error, OperationalError) and connection.vendor == "postgresql"


def release_connection() -> None:
    """Give the connection back to the pool before a long wait, so that others can use it."""
    if connection.vendor == "postgresql" and not connection.in_atomic_block:
        connection.close()


def mark_in_use() -> None:
    """Let no restore begin while this process lives; one that has begun is waited for. PostgreSQL knows by itself."""
    if connection.vendor == "sqlite":
        _marks.append(_mark())
        fcntl.flock(_marks[-1], fcntl.LOCK_SH)


@contextmanager
def exclusive_use() -> Iterator[bool]:
    """Whether nobody else uses the database; on SQLite nobody begins to until the block ends."""
    if connection.vendor == "sqlite":
        with os.fdopen(_mark()) as mark:
            try:
                fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True
    else:
        connection.close_pool()  # type: ignore[attr-defined]  # of PostgreSQL's
        with connection.cursor() as cursor:
            cursor.execute(_OTHER_SESSIONS)
            (others,) = cursor.fetchone()
        yield not others


def _mark() -> int:
    return os.open(f"{connection.settings_dict['NAME']}.in-use", os.O_CREAT | os.O_RDWR, 0o600)
