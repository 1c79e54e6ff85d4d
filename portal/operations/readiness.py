"""The state of this deployment: database, migrations, worker, settings."""

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

from portal.core.environment import is_set
from portal.jobs.status import jobs_status

CONNECT_SECONDS = 2
"""Health checks wait no longer than this for a connection."""


def readiness() -> tuple[bool, list[str]]:
    """Whether this process may receive requests, with a line for each check."""
    try:
        require_database()
        pending = pending_migrations()
        work = jobs_status() if not pending else None
    except DatabaseError:
        return False, ["database: not responding"]
    migrations = f"migrations: {pending} not applied" if pending else "migrations: ok"
    worker = "worker: ok" if work and work.is_working else "worker: not running"
    return not pending, ["database: ok", migrations, worker]


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
