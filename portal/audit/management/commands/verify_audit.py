"""Checks the whole audit trail."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from portal.audit import integrity


class Command(BaseCommand):
    """``manage.py verify_audit``; the worker does the same every day."""

    help = "Check the audit trail, and report the first bad entry."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            self.stdout.write(integrity.check_trail())
        except integrity.TrailBroken as problem:
            raise CommandError(str(problem)) from None
