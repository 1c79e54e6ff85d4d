"""Preparation, availability and exclusive use of the database, on SQLite and PostgreSQL.

Hides how each database reports that it is locked, full, read-only or down.
"""

import fcntl
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from pathlib import Path
from typing import Any, TypeVar

from django.conf import settings
from django.db import (
    DatabaseError,
    InterfaceError,
    OperationalError,
    connection,
)
from django.db.backends.utils import CursorWrapper

from servicing.masking import masked_text

T = TypeVar("T")

MAX_THREADS = 24
_UPGRADE_LOCK = 7_231_905

# SQLite: busy, locked, out of memory, read-only, I/O error, full, cannot be opened, locking protocol.
_SQLITE_CODES = {5, 6, 7, 8, 10, 13, 14, 15}
# PostgreSQL: connection, read-only, deadlock, resources and disk, lock not available, ended by an operator, system
# error.
_POSTGRES_STATES = ("08", "25006", "40", "53", "55P03", "57", "58")

# Sessions of other portal processes. Settings name them, so this process's pool and an operator's psql don't match.
_OTHER_SESSIONS = """SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
    AND application_name LIKE 'servicing-%' AND application_name <> current_setting('application_name')"""

# Open lock files, whose locks last as long as this process.
_lock_files: list[int] = []


def is_unavailable(error: BaseException | None) -> bool:
    """Whether the database is down, locked, full or read-only, rather than the statement wrong."""
    if isinstance(error, InterfaceError):
        return True
    cause = getattr(error, "__cause__", None)
    if code := getattr(cause, "sqlite_errorcode", None):
        return code & 0xFF in _SQLITE_CODES
    if state := getattr(cause, "sqlstate", None):
        return str(state).startswith(_POSTGRES_STATES)
    return isinstance(error, OperationalError)


def release_connection() -> None:
    """Return the connection to the pool before a long wait, so that others can use it."""
    if not connection.in_atomic_block:
        connection.close()


def in_parallel(work: Callable[[T], object], items: Sequence[T]) -> None:
    """Do the work for all items at once, each in a thread with a connection of its own.

    Inside a transaction, which other threads can't see, one after another.
    """

    def in_thread(item: T) -> None:
        try:
            work(item)
        finally:
            connection.close()

    if len(items) < 2 or connection.in_atomic_block:
        for item in items:
            work(item)
        return
    release_connection()
    with ThreadPoolExecutor(min(len(items), MAX_THREADS)) as pool:
        # The context is copied, so that logs of a call have the reference of the request.
        for done in [pool.submit(copy_context().run, in_thread, item) for item in items]:
            done.result()


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


def sqlite_file() -> Path | None:
    """The file of an SQLite database; None on PostgreSQL."""
    return Path(connection.settings_dict["NAME"]) if connection.vendor == "sqlite" else None


def analyze() -> None:
    """Update SQLite's statistics for planning queries; PostgreSQL updates them by itself."""
    if sqlite_file():
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA analysis_limit=1000")
            cursor.execute("ANALYZE")


def lock_on_postgresql(key: int) -> None:
    """Wait for an advisory lock that ends with the transaction. On SQLite every transaction is the only writer."""
    if not sqlite_file():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [key])


def find_folder_problem() -> str:
    """Why the SQLite database's folder can't be used, with the command that fixes it; empty if it can."""
    file = sqlite_file()
    if not file or os.access(folder := file.parent, os.W_OK):
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
    if sqlite_file():
        _lock_files.append(_open_lock_file())
        fcntl.flock(_lock_files[-1], fcntl.LOCK_SH)


@contextmanager
def exclusive_use() -> Iterator[bool]:
    """Yield whether nobody else uses the database. On SQLite others wait until the block ends."""
    if sqlite_file():
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


def _try_lock(cursor: CursorWrapper) -> bool:
    """Take the lock if it is free. Waiting inside the query would block indexes that are created concurrently."""
    cursor.execute("SELECT pg_try_advisory_lock(%s)", [_UPGRADE_LOCK])
    return bool(cursor.fetchone()[0])


@contextmanager
def upgrade_lock() -> Iterator[None]:
    """Run upgrades one after the other, by a PostgreSQL lock or a lock file beside SQLite's."""
    database = sqlite_file()
    if not database:
        with connection.cursor() as cursor:  # The lock belongs to this connection and ends with it.
            cursor.execute("SET lock_timeout = 0")
            while not _try_lock(cursor):
                time.sleep(0.2)
        try:
            yield
        finally:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [_UPGRADE_LOCK])
                cursor.execute("RESET lock_timeout")
    else:
        beside = database.with_name(f"{database.name}.upgrade")
        with os.fdopen(os.open(beside, os.O_CREAT | os.O_RDWR, 0o600)) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
