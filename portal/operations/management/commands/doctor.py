"""Says what is wrong with this deployment, if anything is."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from portal.operations.doctor import findings

MARKS = {"ok": "ok   ", "warn": "warn ", "bad": "WRONG"}


class Command(BaseCommand):
    """``manage.py doctor``; it exits with 1 if something is wrong."""

    help = "Check settings, files, database, service, worker, documents, cache and audit trail."
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        wrong = 0
        for found in findings():
            self.stdout.write(f"{MARKS[found.grade]}  {found.words}")
            wrong += found.grade == "bad"
        if wrong:
            raise CommandError(f"{wrong} to fix.")
