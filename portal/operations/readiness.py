"""Whether this deployment is in order: its database and migrations, its worker, its trail, and what is set."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

from portal import cache
from portal.audit.models import Entry
from portal.disk import write_if_possible
from portal.environment import is_given
from portal.jobs.state import state
from portal.operations.models import Tally
from portal.operations.rights import is_lack_of_rights

PATIENCE = 2
"""Seconds: whoever asks whether all is well waits no longer than that."""


def readiness() -> tuple[bool, list[str]]:
    """Whether requests may come, and a line for each thing that was looked at.

    They may without a cache, and while nothing can be written: pages that only read work.
    """
    try:
        require_database()
        pending = pending_migrations()
        work = state() if not pending else None
    except DatabaseError as error:
        lacks_rights = is_lack_of_rights(error)
        return False, [f"database: {'this role lacks rights' if lacks_rights else 'not answering'}"]
    migrations = f"migrations: {pending} not applied" if pending else "migrations: ok"
    remembers = "cache: ok" if cache.is_answering() else "cache: not answering"
    worker = "worker: ok" if work and work.is_working else "worker: not running"
    writes = "writes: ok" if pending or can_write() else "writes: not possible (locked, full or read-only)"
    return not pending, ["database: ok", migrations, writes, remembers, worker]


def can_write() -> bool:
    """Whether the database takes a write now."""
    tally: dict[str, Any] = {"kind": "check", "name": "readyz", "outcome": "", "span": 0}
    return write_if_possible(lambda: Tally.objects.update_or_create(**tally)) is not None


def require_database() -> None:
    """Raise what a query would, but soon: a page has longer to get a connection of the pool."""
    if connection.connection is None and (pool := getattr(connection, "pool", None)):
        with connection.wrap_database_errors:
            pool.open()
            with pool.connection(timeout=PATIENCE):
                pass


def pending_migrations() -> int:
    """How many this version has that the database lacks."""
    executor = MigrationExecutor(connection)
    return len(executor.migration_plan(executor.loader.graph.leaf_nodes()))


def configuration() -> list[tuple[str, str]]:
    """Each setting of the connection, and whether somebody set it or its default holds; never what it holds."""
    names = sorted(name for name in dir(settings) if name.startswith("SERVICING_"))
    return [(name, _origin(name)) for name in names]


def _origin(name: str) -> str:
    if is_given(name):
        return "set"
    return "not set" if getattr(settings, name) in ("", None, []) else "default"


@dataclass(frozen=True)
class Chain:
    """The audit trail: its last entry, its last check and its last checkpoint."""

    entries: int
    last: Entry | None
    checked: Entry | None
    signed: Entry | None

    @property
    def checked_at(self) -> datetime | None:
        """When somebody last checked all of it."""
        return self.checked.at if self.checked else None


def chain() -> Chain:
    """The state of the trail; entries are numbered without gaps, so the last one's number counts them."""
    last = Entry.objects.first()
    checked, signed = (
        Entry.objects.filter(action=action).first() for action in ("audit.verify", "audit.checkpoint")
    )
    return Chain(last.pk if last else 0, last, checked, signed)
