"""Migrates the database to this version, once, even if several upgrades start at the same time."""

from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connection
from django.db.migrations.loader import MigrationLoader

from portal.core.database import find_folder_problem, upgrade_lock
from portal.operations.labels import rename_apps


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
