"""Says what is wrong with this deployment, if anything is."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from portal.audit import writes
from portal.operations.doctor import findings

MARKS = {"ok": "ok   ", "warn": "warn ", "bad": "WRONG"}


class Command(BaseCommand):
    """``manage.py doctor [--discard ID --reason WHY]``; it exits with 1 if something is wrong."""

    help = "Check settings, files, database, service, worker, documents, cache and audit trail."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add what to discard before checking."""
        parser.add_argument(
            "--discard",
            metavar="ID",
            help="remove the saved response to this request, which isn’t in the database",
        )
        parser.add_argument("--reason", default="", help="the reason, kept in the audit trail")

    def handle(self, *args: Any, discard: str | None = None, reason: str = "", **options: Any) -> None:
        if discard and not reason.strip():
            raise CommandError("Give a reason: --reason WHY.")
        if discard and not writes.discard_answer(discard, reason.strip()[:500]):
            raise CommandError(
                f"No saved response belongs to a request {discard} that is missing from the database."
            )
        wrong = 0
        for found in findings():
            self.stdout.write(f"{MARKS[found.grade]}  {found.words}")
            wrong += found.grade == "bad"
        if wrong:
            raise CommandError(f"{wrong} to fix.")
