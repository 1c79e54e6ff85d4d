"""Writes a complete copy of the database while people work."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from portal.audit.chain import append
from portal.audit.models import Actor, Entry
from portal.operations.backups import BackupError, back_up, delete_oldest


class Command(BaseCommand):
    """``manage.py backup FILE``, or ``manage.py backup FOLDER --keep 14`` on a schedule."""

    help = "Copy the database to a new file. The copy contains personal data: protect it like the database."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="a new file; with --keep a folder")
        parser.add_argument(
            "--keep", type=int, metavar="N", help="name the copy by its time; delete all but the newest N"
        )

    def handle(self, *args: Any, file: Path, keep: int | None = None, **options: Any) -> None:
        if keep is not None:
            if keep < 1:
                raise CommandError("--keep needs a number, 1 or more.")
            file = file / f"{timezone.now():%Y%m%dT%H%M%SZ}.copy"
        elif file.is_dir():
            raise CommandError(f"{file} is a folder. Name a new file, or add --keep N.")
        if not file.parent.is_dir():
            raise CommandError(
                f"The folder {file.parent} doesn’t exist. "
                f"Type: sudo install --directory --mode 700 --owner $(id --user) {file.parent}"
            )
        Entry.objects.exists()  # Raises if the database is away or has no tables.
        try:
            back_up(file)
            append(Actor.system("backup"), "operations.backup", subject_label=file.name[:300])
            deleted = delete_oldest(file, keep) if keep else []
        except BackupError as problem:
            raise CommandError(str(problem)) from None
        self.stdout.write(f"Written: {file}, {file.stat().st_size:,} bytes.")
        for one in deleted:
            self.stdout.write(f"Deleted: {one}.")
