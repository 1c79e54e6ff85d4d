"""Writes a whole copy of the database, while everybody works."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from portal.audit.chain import append
from portal.audit.models import Actor
from portal.operations.backups import BackupError, back_up


class Command(BaseCommand):
    """``manage.py backup FILE``."""

    help = "Copy the database into a new file. It holds personal data: keep it as safe as the database."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Where to."""
        parser.add_argument("file", type=Path)

    def handle(self, *args: Any, file: Path, **options: Any) -> None:
        append(Actor.system("backup"), "operations.backup", subject_label=file.name[:300])
        try:
            back_up(file)
        except BackupError as problem:
            raise CommandError(str(problem)) from None
        self.stdout.write(f"Written: {file}, {file.stat().st_size:,} bytes.")
