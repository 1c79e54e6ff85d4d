"""``manage.py vendor_assets``: fetch the vendored files again, or with ``--check`` prove them unchanged."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from portal.ui import vendor


class Command(BaseCommand):
    help = "Fetch the vendored style sheet, icons and font again (needs npm), or check them (offline)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--check", action="store_true", help="only compare the files with their checksums"
        )

    def handle(self, *, check: bool, **_: Any) -> None:
        if not check:
            vendor.pack()
        if changed := vendor.changed_files():
            raise CommandError(f"Not as in the manifest: {', '.join(changed)}.")
        self.stdout.write("All vendored files are as in their manifests.")
