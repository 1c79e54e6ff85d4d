"""Imports IDs and profiles exported from a lender's own records."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.template.defaultfilters import pluralize

from portal.audit.chain import append
from portal.audit.models import Actor
from portal.lookup.imports import ImportReport, import_ids, import_profiles, open_lines


class Command(BaseCommand):
    """``manage.py import_ids ids.csv --profiles profiles.jsonl``"""

    help = "Import IDs (CSV: kind,uuid,borrower_uuid,label) and user objects (JSON Lines)."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("ids", nargs="?", type=Path, help="CSV file of IDs")
        parser.add_argument("--profiles", type=Path, help="user objects as JSON Lines")

    def handle(self, *args: Any, ids: Path | None, profiles: Path | None, **options: Any) -> None:
        if not ids and not profiles:
            raise CommandError("Give a CSV file of IDs, --profiles with a file of user objects, or both.")
        actor = Actor.system("import")
        for path, importer in ((ids, import_ids), (profiles, import_profiles)):
            if path:
                self.import_file(path, importer, actor)

    def import_file(self, path: Path, importer: Any, actor: Actor) -> None:
        """Import one file, print the rejected lines, and append an audit entry."""
        name = path.name.encode("utf-8", "replace").decode()  # It may not be valid UTF-8.
        try:
            with path.open("rb") as file, open_lines(file) as lines:
                report: ImportReport = importer(
                    lines, by=actor.name, at=datetime.fromtimestamp(path.stat().st_mtime, UTC)
                )
        except OSError as error:
            raise CommandError(f"{path} cannot be read: {error}") from None
        for number, reason in report.refused:
            self.stderr.write(f"{name} line {number}: {reason}")
        append(
            actor,
            "lookup.import_records",
            subject_label=name[:300],
            detail={"taken": report.taken, "refused": len(report.refused)},
        )
        self.stdout.write(
            f"{name}: {report.taken} record{pluralize(report.taken)} imported, "
            f"{len(report.refused)} line{pluralize(len(report.refused))} rejected."
        )
        if report.remark:
            self.stdout.write(f"{name}: {report.remark}")
