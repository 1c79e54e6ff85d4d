"""The sandbox's data in one SQLite file. Hides SQL, the schema and transactions.

A record has the object that the interface returns (``body``) and data that it never returns (``private``: decrypted
numbers, a line's rate, the contents of a statement). Messages have their own table because they are filtered and
paged. They are counted by day and event as they arrive, because counting a million takes longer than reading a page.

One connection serves all threads, one transaction at a time; other processes may use the file at the same time. An
acknowledged write survives ``kill -9``: WAL with ``synchronous=FULL``.
"""

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from servicing.sandbox.wire import JSON, dumps, loads

SCHEMA = """
CREATE TABLE IF NOT EXISTS records (
    position INTEGER PRIMARY KEY,
    uuid TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    owner TEXT NOT NULL,
    body TEXT NOT NULL,
    private TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS records_by_owner ON records (kind, owner, position);
CREATE INDEX IF NOT EXISTS records_by_due_day ON records (kind, private ->> 'due_on')
    WHERE private ->> 'due_on' IS NOT NULL;
CREATE TABLE IF NOT EXISTS messages (
    position INTEGER PRIMARY KEY,
    uuid TEXT NOT NULL UNIQUE,
    at TEXT NOT NULL,
    day TEXT NOT NULL,
    event TEXT NOT NULL,
    body TEXT NOT NULL
) STRICT;
DROP INDEX IF EXISTS messages_newest_first;
CREATE INDEX IF NOT EXISTS messages_by_day ON messages (day, at);
CREATE INDEX IF NOT EXISTS messages_by_event ON messages (event, day, at);
CREATE TABLE IF NOT EXISTS message_counts (
    day TEXT NOT NULL, event TEXT NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (day, event)
) STRICT, WITHOUT ROWID;
INSERT INTO message_counts SELECT day, event, count(*) FROM messages
    WHERE NOT EXISTS (SELECT 1 FROM message_counts) GROUP BY day, event;
CREATE TRIGGER IF NOT EXISTS message_added AFTER INSERT ON messages BEGIN
    INSERT INTO message_counts VALUES (new.day, new.event, 1) ON CONFLICT DO UPDATE SET number = number + 1;
END;
CREATE TRIGGER IF NOT EXISTS message_removed AFTER DELETE ON messages BEGIN
    UPDATE message_counts SET number = number - 1 WHERE day = old.day AND event = old.event;
END;
CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
"""
APPLICATION_ID = 0x5A4DB0C5
"""The mark in the file header by which the sandbox recognizes its own files."""
TABLES = ("records", "messages", "settings")


@dataclass(kw_only=True)
class Record:
    """A record of the service. ``owner`` is the uuid of a user, or of an account for statements and repayments."""

    kind: str
    uuid: str
    owner: str
    body: dict[str, Any]
    private: dict[str, Any] = field(default_factory=dict, repr=False)


class RecordNotFound(Exception):
    """There is no such record, or it belongs to another owner."""


class Store:
    """Records and messages in the SQLite file at ``path``, which is created with mode 0600."""

    def __init__(self, path: str | Path) -> None:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        self._lock = threading.RLock()
        self._db = sqlite3.connect(path, timeout=20, isolation_level=None, check_same_thread=False)
        self._claim()
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=FULL")
        self._db.executescript(SCHEMA)

    def _claim(self) -> None:
        """Mark a new file as a sandbox's; ``DatabaseError`` for a database of another program."""
        (owner,) = self._db.execute("PRAGMA application_id").fetchone()
        (tables,) = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if tables and owner != APPLICATION_ID:
            self._db.close()
            raise sqlite3.DatabaseError("file belongs to another program")
        self._db.execute(f"PRAGMA application_id = {APPLICATION_ID}")

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()

    @contextmanager
    def read_transaction(self) -> Iterator[None]:
        """Run a block with a consistent view of the data."""
        with self._transaction("BEGIN"):
            yield

    @contextmanager
    def write_transaction(self) -> Iterator[None]:
        """Run a block in one transaction, or in the current one."""
        with self._transaction("BEGIN IMMEDIATE"):
            yield

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        with self._lock:
            if self._db.in_transaction:
                yield
                return
            self._db.execute(begin)
            try:
                yield
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    # Records

    def insert(self, record: Record) -> None:
        """Add a record with a new uuid."""
        with self._lock:
            self._db.execute(
                "INSERT INTO records (uuid, kind, owner, body, private) VALUES (?, ?, ?, ?, ?)",
                (record.uuid, record.kind, record.owner, _text(record.body), _text(record.private)),
            )

    def update(self, record: Record) -> None:
        """Save the body and the private part of a record."""
        with self._lock:
            self._db.execute(
                "UPDATE records SET body = ?, private = ? WHERE uuid = ?",
                (_text(record.body), _text(record.private), record.uuid),
            )

    def remove(self, uuid: str) -> None:
        """Delete a record."""
        with self._lock:
            self._db.execute("DELETE FROM records WHERE uuid = ?", (uuid,))

    def find(self, kind: str, uuid: str, *, owner: str | None = None) -> Record | None:
        """The record, or None if its kind or owner differs."""
        for record in self._select("kind = ? AND uuid = ?", (kind, uuid)):
            return record if owner in (None, record.owner) else None
        return None

    def require(self, kind: str, uuid: str, *, owner: str | None = None) -> Record:
        """The record; :class:`RecordNotFound` if its kind or owner differs."""
        record = self.find(kind, uuid, owner=owner)
        if record is None:
            raise RecordNotFound(f"{kind.replace('_', ' ').capitalize()} not found")
        return record

    def require_any(self, uuid: str) -> Record:
        """The record of any kind; :class:`RecordNotFound` if there is none."""
        for record in self._select("uuid = ?", (uuid,)):
            return record
        raise RecordNotFound("Record not found")

    def all(self, kind: str, *, owner: str | None = None) -> list[Record]:
        """The records of a kind, oldest first."""
        if owner is None:
            return self._select("kind = ?", (kind,))
        return self._select("kind = ? AND owner = ?", (kind, owner))

    def due(self, kind: str, day: str) -> list[Record]:
        """The records of a kind whose private ``due_on`` is the day or earlier."""
        return self._select("kind = ? AND private ->> 'due_on' <= ?", (kind, day))

    def _select(self, where: str, values: tuple[str, ...]) -> list[Record]:
        sql = f"SELECT kind, uuid, owner, body, private FROM records WHERE {where} ORDER BY position"
        with self._lock:
            rows = self._db.execute(sql, values).fetchall()
        return [
            Record(kind=kind, uuid=uuid, owner=owner, body=loads(body), private=loads(private))
            for kind, uuid, owner, body, private in rows
        ]

    # Messages

    def add_message(self, body: dict[str, Any], *, at: str, day: str) -> None:
        """Add a message that happened at ``at`` (UTC), on ``day`` in the service's zone."""
        with self._lock:
            self._db.execute(
                "INSERT INTO messages (uuid, at, day, event, body) VALUES (?, ?, ?, ?, ?)",
                (body["uuid"], at, day, body["event"], _text(body)),
            )

    def replace_message(self, uuid: str, body: JSON) -> None:
        """List ``body``, which may be anything, in the place of a message."""
        with self._lock:
            self._db.execute("UPDATE messages SET body = ? WHERE uuid = ?", (_text(body), uuid))

    def remove_message(self, uuid: str) -> None:
        """Delete a message."""
        with self._lock:
            self._db.execute("DELETE FROM messages WHERE uuid = ?", (uuid,))

    def messages(
        self, *, start: str | None, end: str | None, event: str | None, skip: int, limit: int
    ) -> tuple[int, list[JSON]]:
        """The number of matching messages (both days inclusive), and one page of them, newest first."""
        conditions = {"day >= ?": start, "day <= ?": end, "event = ?": event}
        active = {test: value for test, value in conditions.items() if value is not None}
        where = " AND ".join(active) or "TRUE"
        with self.read_transaction():
            (total,) = self._db.execute(
                f"SELECT coalesce(sum(number), 0) FROM message_counts WHERE {where}", (*active.values(),)
            ).fetchone()
            rows = self._db.execute(
                f"SELECT body FROM messages WHERE {where} ORDER BY day DESC, at DESC, position DESC"
                " LIMIT ? OFFSET ?",
                (*active.values(), limit, skip),
            ).fetchall()
        return total, [loads(body) for (body,) in rows]

    # Settings

    def setting(self, name: str) -> int:
        """The value of a setting; 0 until it is saved."""
        with self._lock:
            row = self._db.execute("SELECT value FROM settings WHERE name = ?", (name,)).fetchone()
        return row[0] if row else 0

    def save_setting(self, name: str, value: int) -> None:
        """Save the value of a setting."""
        with self._lock:
            self._db.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", (name, value))

    # The whole file

    def is_empty(self) -> bool:
        """Whether there are no records and no messages."""
        with self._lock:
            row = self._db.execute(
                "SELECT EXISTS (SELECT 1 FROM records) OR EXISTS (SELECT 1 FROM messages)"
            ).fetchone()
        return not row[0]

    def clear(self) -> None:
        """Delete everything."""
        with self.write_transaction():
            for table in TABLES:
                self._db.execute(f"DELETE FROM {table}")


def _text(value: JSON) -> str:
    return dumps(value).decode()
