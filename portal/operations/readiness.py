"""The state of this deployment: database, migrations, worker, settings."""

from typing import Any

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

from portal.jobs.status import jobs_status
from portal.operations.models import Tally
from portal.operations.rights import is_lack_of_rights
from portal.runtime import cache
from portal.runtime.database import write_if_possible
from portal.runtime.environment import is_set

CONNECT_SECONDS = 2
"""Health checks wait no longer than this for a connection."""


def readiness() -> tuple[bool, list[str]]:
    """Whether this process may receive requests, with a line for each check.

    It may without a cache and while writes are impossible, because pages that only read still work.
    """
    try:
        require_database()
        pending = pending_migrations()
        work = jobs_status() if not pending else None
    except DatabaseError as error:
        return False, [
            f"database: {'this role lacks rights' if is_lack_of_rights(error) else 'not responding'}"
        ]
    migrations = f"migrations: {pending} not applied" if pending else "migrations: ok"
    cache_line = "cache: ok" if cache.is_answering() else "cache: not responding"
    worker = "worker: ok" if work and work.is_working else "worker: not running"
    writes = "writes: ok" if pending or can_write() else "writes: not possible (locked, full or read-only)"
    return not pending, ["database: ok", migrations, writes, cache_line, worker]


def can_write() -> bool:
    """Whether the database accepts a write now."""
    tally: dict[str, Any] = {"kind": "check", "name": "readyz", "outcome": "", "span": 0}
    return write_if_possible(lambda: Tally.objects.update_or_create(**tally)) is not None


def require_database() -> None:
    """Raise what a query would raise, but sooner than the connection pool gives up."""
    if connection.connection is None and (pool := getattr(connection, "pool", None)):
        with connection.wrap_database_errors:
            pool.open()
            with pool.connection(timeout=CONNECT_SECONDS):
                pass


def pending_migrations() -> int:
    """The number of this version's migrations that the database lacks."""
    executor = MigrationExecutor(connection)
    return len(executor.migration_plan(executor.loader.graph.leaf_nodes()))


def configuration() -> list[tuple[str, str]]:
    """List the settings of the connection: set, default or not set, never their value."""
    unset = {
        name: "not set" if getattr(settings, name) in ("", None, []) else "default"
        for name in sorted(dir(settings))
        if name.startswith("SERVICING_")
    }
    return [(name, "set" if is_set(name) else words) for name, words in unset.items()]
