"""Tries every read of the lending service, and says what fits and which setting to change."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.template.loader import render_to_string

from portal.operations.first_day import IDsForm, run

IDS = ("borrower", "application", "loan", "line")


class Command(BaseCommand):
    """``manage.py first_day``; it exits with 1 if something is left."""

    help = "Try every read of the lending service, and report what differs and the setting to try. Sends no change."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the records to read and the file for the report."""
        for name in IDS:
            parser.add_argument(f"--{name}", default="", metavar="ID", help=f"a {name} that exists")
        parser.add_argument("--html", type=Path, metavar="FILE", help="write the report as a page, too")

    def handle(self, *args: Any, html: Path | None = None, **options: Any) -> None:
        form = IDsForm({f"{name}_id": options[name] for name in IDS})
        if not form.is_valid():
            raise CommandError(
                "; ".join(
                    f"--{name.removesuffix('_id')}: {' '.join(map(str, why))}"
                    for name, why in form.errors.items()
                )
            )
        report = run(form.cleaned_data)
        self.stdout.write(report.text(), ending="")
        if html:
            try:
                html.write_text(render_to_string("operations/first_day_alone.html", {"report": report}))
            except OSError as problem:
                raise CommandError(f"{html} can’t be written: {problem.strerror}.") from None
        if not report.is_usable:
            raise CommandError("Something is left; see above.")
