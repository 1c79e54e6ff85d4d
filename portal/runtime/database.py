"""Preparation, durability, availability and exclusive use of the database, on SQLite and PostgreSQL.

Every commit waits for the disk, except those that a power failure may lose. On SQLite, a writer holds the only write
lock while it waits for the disk. Hides SQLite's pragmas and how each database reports that it is locked, full,
read-only or down.
"""

import fcntl
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from django.conf import settings
from django.db import (
    DEFAULT_DB_ALIAS,
    DatabaseError,
    Error,
    InterfaceError,
    OperationalError,
    connection,
    connections,
)

from servicing.masking import masked_text

T = TypeVar("T")

OPTIONAL_WAIT_SECONDS = 1.0
"""How long an optional write waits for a lock."""
OPTIONAL_PAUSE_SECONDS = 4.0
"""How long optional writes give up almost at once, after one waited in vain."""
PAUSED_WAIT_SECONDS = 0.1
"""How long they wait during that pause: longer than a short transaction takes."""
# SQLite: busy, locked, out of memory, read-only, I/O error, full, cannot be opened, locking protocol.
_SQLITE_CODES = {5, 6, 7, 8, 10, 13, 14, 15}
# PostgreSQL: connection, read-only, deadlock, resources and disk, lock not available, ended by an operator, system
# error.
_POSTGRES_STATES = ("08", "25006", "40", "53", "55P03", "57", "58")

# Sessions of other portal processes. Settings name them, so this process's pool and an operator's psql don't match.
_OTHER_SESSIONS = """SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
    AND application_name LIKE 'servicing-%' AND application_name <> current_setting('application_name')"""

logger = logging.getLogger(__name__)
_pause_ends_at = 0.0
_writers = threading.RLock()
# Open lock files, whose locks last as long as this process.
_lock_files: list[int] = []


@contextmanager
def relaxed_durability(wait: float | None = None, synchronous: str = "NORMAL") -> Iterator[None]:
    """Commit with synchronous=NORMAL on SQLite: a crash of the program loses nothing, a power failure may.

    ``wait`` is the seconds to wait for the lock; the default is the wait of optional writes. With ``FULL`` only the
    wait is shorter.
    """
    if connection.vendor != "sqlite" or connection.in_atomic_block:
        yield
        return
    is_paused = wait is None and accepts_no_writes()
    wait = wait or (PAUSED_WAIT_SECONDS if is_paused else OPTIONAL_WAIT_SECONDS)
    usual = connection.settings_dict["OPTIONS"]["timeout"]
    connection.ensure_connection()
    with _turn(wait) as left:
        _set_pragmas(synchronous, left)
        try:
            yield
            if is_paused:
                _end_pause()
        except DatabaseError as error:
            # A short wait proves nothing, since others may be writing, so it doesn't prolong the pause.
            if is_unavailable(error) and not is_paused:
                pause_optional_writes()
            raise
        finally:
            _set_pragmas("FULL", usual)


def _set_pragmas(synchronous: str, wait: float) -> None:
    """Set them without Django's cursor, which takes longer than the pragmas: each page does this twice."""
    with connection.wrap_database_errors:
        connection.connection.execute(f"PRAGMA synchronous={synchronous}")
        connection.connection.execute(f"PRAGMA busy_timeout={round(wait * 1000)}")


@contextmanager
def _turn(seconds: float) -> Iterator[float]:
    """Wait for the other threads of this process; yield the seconds that are left.

    SQLite has no queue for its lock. Waiting threads check it after ever longer pauses, so with many threads some
    would wait for seconds.
    """
    ends_at = time.monotonic() + seconds
    has_turn = _writers.acquire(timeout=seconds)
    try:
        yield max(ends_at - time.monotonic(), 0)
    finally:
        if has_turn:
            _writers.release()


@contextmanager
def fresh_connection(seconds: float) -> Iterator[None]:
    """Use a new connection whose statements wait at most this long; inside a transaction, keep the current one."""
    if connection.in_atomic_block:
        yield
        return
    usual = connections[DEFAULT_DB_ALIAS]
    fresh = usual.copy()
    options = fresh.settings_dict["OPTIONS"]
    if fresh.vendor == "sqlite":
        options["timeout"] = seconds
    else:
        from portal.runtime.postgres import WatchedConnection  # SQLite needs no driver.

        options.pop("pool", None)
        milliseconds = max(round(seconds * 1000), 1)
        limits = f"-c lock_timeout={milliseconds} -c statement_timeout={milliseconds}"
        options["options"] = f"{options.get('options', '')} {limits}"
        # libpq takes whole seconds, at least two. The kernel gives up on a network that accepts nothing.
        options["connect_timeout"] = max(round(seconds), 2)
        options["tcp_user_timeout"] = milliseconds
        fresh.ensure_connection()
        fresh.connection.__class__ = WatchedConnection  # Django lets only a pool choose the class.
    connections[DEFAULT_DB_ALIAS] = fresh
    try:
        yield
    finally:
        connections[DEFAULT_DB_ALIAS] = usual
        fresh.close()


def write_if_possible(write: Callable[[], T], *, is_durable: bool = False) -> T | None:
    """Do a write that can wait; return ``None`` if the database accepts none now.

    ``is_durable`` is for the audit trail and what belongs to it: a power failure loses nothing either.
    """
    if connection.in_atomic_block:
        return write()
    if connection.vendor != "sqlite" and accepts_no_writes():
        return None
    try:
        with relaxed_durability(synchronous="FULL" if is_durable else "NORMAL"), _short_lock_wait():
            return write()
    except Error as error:
        if not is_unavailable(error):
            raise
        if connection.vendor != "sqlite":  # There, relaxed_durability did it.
            pause_optional_writes()
        logger.warning("The database takes no writes at the moment: %s", str(error).partition("\n")[0])
        return None


def accepts_no_writes() -> bool:
    """Whether the database just accepted no write, so that waiting again is pointless."""
    return time.monotonic() < _pause_ends_at


def pause_optional_writes() -> None:
    """Make optional writes give up quickly for a while, after the database accepted none."""
    global _pause_ends_at
    _pause_ends_at = time.monotonic() + OPTIONAL_PAUSE_SECONDS


def _end_pause() -> None:
    """Let optional writes wait again, after the database accepted one."""
    global _pause_ends_at
    _pause_ends_at = 0.0


@contextmanager
def _short_lock_wait() -> Iterator[None]:
    """Limit the wait for locks on PostgreSQL; :func:`relaxed_durability` does it for SQLite."""
    if connection.vendor != "postgresql":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute(f"SET lock_timeout = {round(OPTIONAL_WAIT_SECONDS * 1000)}")
        try:
            yield
        finally:
            with suppress(Error):  # A lost connection takes the limit with it.
                cursor.execute("RESET lock_timeout")


def is_unavailable(error: BaseException | None) -> bool:
    """Whether the database is down, locked, full or read-only, rather than the statement wrong."""
    if isinstance(error, InterfaceError):
        return True
    cause = getattr(error, "__cause__", None)
    if code := getattr(cause, "sqlite_errorcode", None):
        return code & 0xFF in _SQLITE_CODES
    if state := getattr(cause, "sqlstate", None):
        return str(state).startswith(_POSTGRES_STATES)
    return isinstance(error, OperationalError) and connection.vendor == "postgresql"


def release_connection() -> None:
    """Return the connection to the pool before a long wait, so that others can use it."""
    if connection.vendor == "postgresql" and not connection.in_atomic_block:
        connection.close()


def index_values(rows: str, column: str, limit: int) -> list[str]:
    """The distinct values of an indexed text column in order, one index step each instead of a scan of all rows.

    ``rows`` is a table and the beginning of its condition: ``orders WHERE is_open AND`` or ``orders WHERE``.
    """
    following = f"SELECT min({column}) FROM {rows} {column} >"  # noqa: S608 - names of tables and columns
    statement = (
        f"WITH RECURSIVE present (value) AS ({following} '' UNION ALL SELECT ({following} value) FROM present"  # noqa: S608
        " WHERE value IS NOT NULL) SELECT value FROM present WHERE value IS NOT NULL LIMIT %s"
    )
    return [value for (value,) in fetch_rows(statement, [limit])]


def fetch_rows(statement: str, parameters: Sequence[Any] | None = None) -> list[Any]:
    """The rows of a plain SQL statement, which skips the work of building a query."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return list(cursor.fetchall())


def find_folder_problem() -> str:
    """Why the SQLite database's folder can't be used, with the command that fixes it; empty if it can."""
    folder = Path(connection.settings_dict["NAME"]).parent
    if connection.vendor != "sqlite" or os.access(folder, os.W_OK):
        return ""
    fix = f"Type: sudo install --directory --mode 700 --owner $(id --user) {folder}"
    return f"{settings.DATABASE_PLACED_BY} points to the folder {folder}, where this user can’t write. {fix}"


def find_setup_problem() -> str:
    """Why the database isn't set up, with the command to type; empty if it is, or if it doesn't answer."""
    try:
        if (
            problem := find_folder_problem()
        ) or "django_migrations" in connection.introspection.table_names():
            return problem
    except DatabaseError:
        return ""
    return "The database has no tables yet. Type: .venv/bin/python manage.py upgrade"


def find_connection_problem() -> str:
    """Why the database doesn't answer; empty if it does. A pool would retry for a while and give no reason."""
    single = connection.copy()
    if single.settings_dict["OPTIONS"].pop("pool", None):
        single.settings_dict["OPTIONS"]["connect_timeout"] = 5
    try:
        single.ensure_connection()
    except DatabaseError as error:
        reason = masked_text(str(error).partition("\n")[0][:300])
        return f"The database isn’t responding. Check {settings.DATABASE_PLACED_BY}. {reason}"
    single.close()
    return ""


def mark_in_use() -> None:
    """Block restores while this process lives, and wait for a running one. PostgreSQL lists its sessions instead."""
    if connection.vendor == "sqlite":
        _lock_files.append(_open_lock_file())
        fcntl.flock(_lock_files[-1], fcntl.LOCK_SH)


@contextmanager
def exclusive_use() -> Iterator[bool]:
    """Yield whether nobody else uses the database. On SQLite others wait until the block ends."""
    if connection.vendor == "sqlite":
        with os.fdopen(_open_lock_file()) as lock_file:
            try:
                fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True
    else:
        connection.close_pool()  # type: ignore[attr-defined]  # of PostgreSQL's
        yield _is_only_session()


def _is_only_session() -> bool:
    """Whether no other process of the portal is connected. Waits up to a second for ended ones to disconnect."""
    deadline = time.monotonic() + 1
    while True:
        ((others,),) = fetch_rows(_OTHER_SESSIONS)
        if not others or time.monotonic() > deadline:
            return not others
        time.sleep(0.1)


def _open_lock_file() -> int:
    return os.open(f"{connection.settings_dict['NAME']}.in-use", os.O_CREAT | os.O_RDWR, 0o600)
