"""Migrates the database to this version, once, even if several upgrades start at the same time."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connection
from django.db.backends.utils import CursorWrapper
from django.db.migrations.loader import MigrationLoader

from portal.operations.labels import rename_apps
from portal.runtime.database import find_folder_problem

_POSTGRES_LOCK = 7_231_905
PAUSE_SECONDS = 0.2


class Command(BaseCommand):
    """``manage.py upgrade``: ``migrate``, also from version 1.0; a second one waits, and then finds nothing to do."""

    help = "Apply migrations. Safe to run several at once."
    requires_migrations_checks = False

    def handle(self, *args: Any, verbosity: int, **options: Any) -> None:
        if problem := find_folder_problem():
            raise CommandError(problem)
        with upgrade_lock():
            try:
                rename_apps(connection.alias)
                call_command("migrate", verbosity=verbosity, stdout=self.stdout)
            except DatabaseError:
                if unknown := _unknown_migrations():
                    raise CommandError(
                        f"This database belongs to another version of the portal: it has {', '.join(unknown)}. "
                        "Use that version, or start with an empty database."
                    ) from None
                raise


def _unknown_migrations() -> list[str]:
    """List the migrations that the database has and this version doesn't."""
    loader = MigrationLoader(connection)
    return sorted(
        f"{app}.{name}"
        for app, name in loader.applied_migrations
        if app in loader.migrated_apps and (app, name) not in loader.disk_migrations
    )


def _try_lock(cursor: CursorWrapper) -> bool:
    """Take the lock if it is free. Waiting inside the query would block indexes that are created concurrently."""
    cursor.execute("SELECT pg_try_advisory_lock(%s)", [_POSTGRES_LOCK])
    return bool(cursor.fetchone()[0])


@contextmanager
def upgrade_lock() -> Iterator[None]:
    """Run upgrades one after the other, by a PostgreSQL lock or a lock file beside SQLite's."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:  # The lock belongs to this connection and ends with it.
            cursor.execute("SET lock_timeout = 0")
            while not _try_lock(cursor):
                time.sleep(PAUSE_SECONDS)
        try:
            yield
        finally:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [_POSTGRES_LOCK])
                cursor.execute("RESET lock_timeout")
    else:
        beside = Path(f"{connection.settings_dict['NAME']}.upgrade")
        with os.fdopen(os.open(beside, os.O_CREAT | os.O_RDWR, 0o600)) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
