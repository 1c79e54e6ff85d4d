"""Replaces the database with a backup, and verifies its audit trail."""

import os
import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from portal.audit.chain import append
from portal.audit.integrity import verify_chain
from portal.audit.models import Actor
from portal.core.database import exclusive_use, find_connection_problem, find_folder_problem, sqlite_file
from portal.operations.backups import BackupError, restore, scratch_database

IN_USE = (
    "Web or worker processes use the database. Stop them first, or add --while-in-use to replace it anyway."
)


class Command(BaseCommand):
    """``manage.py restore FILE --replace``, or ``--check`` for a drill."""

    help = "Replace the database with a backup. Stop web and workers first."
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--replace", action="store_true", help="confirm that the current data is lost")
        parser.add_argument(
            "--check", action="store_true", help="only test the backup, in a temporary database"
        )
        parser.add_argument(
            "--while-in-use", action="store_true", help="replace the database even while it is in use"
        )

    def handle(
        self, *args: Any, file: Path, replace: bool, check: bool, while_in_use: bool, **options: Any
    ) -> None:
        if not (check or replace):
            raise CommandError("The current data would be lost. Add --replace to confirm.")
        if problem := find_folder_problem():
            raise CommandError(problem)
        if not file.is_file():
            raise CommandError(f"{file} doesn’t exist. manage.py backup FILE creates one.")
        if check:
            self.restore_temporarily(file)
            return
        with exclusive_use() as is_alone:
            if not (is_alone or while_in_use):
                raise CommandError(IN_USE)
            self.replace_database(file)
        append(Actor.system("restore"), "operations.restore", subject_label=file.name[:300])
        checked = verify_chain()
        if checked.found:
            raise CommandError(f"The backup was restored, but its audit trail is broken. {checked.found}")
        self.stdout.write(f"The audit trail is intact: {checked.entries:,} entries.")

    def restore_temporarily(self, file: Path) -> None:
        """Restore the backup into a temporary database, which is removed afterwards."""
        try:
            with scratch_database() as environment:
                done = subprocess.run(
                    [sys.executable, "manage.py", "restore", str(file.resolve()), "--replace"],
                    cwd=settings.BASE_DIR,
                    env=os.environ | environment,
                    capture_output=True,
                    text=True,
                    check=False,
                )
        except (DatabaseError, OSError) as problem:
            why = find_connection_problem() or f"The temporary database can’t be created: {problem}".strip()
            raise CommandError(why) from None
        if done.returncode:
            why = done.stderr.strip().splitlines()[-1].removeprefix("CommandError: ")
            raise CommandError(f"The backup can’t be restored. {why}")
        self.stdout.write(next(line for line in done.stdout.splitlines() if "audit trail" in line))
        self.stdout.write("The backup can be restored. Nothing was changed.")

    def replace_database(self, file: Path) -> None:
        """Replace the database with the backup, and migrate it to this version."""
        try:
            restore(file)
        except BackupError as problem:
            raise CommandError(str(problem)) from None
        call_command("upgrade", verbosity=0)
        if not sqlite_file():
            self.stdout.write(
                "If web and worker use a separate role, run docker/audit-roles.sql for that role."
            )
