"""Reads every known account again, politely, oldest copy first; stopped and started again it goes on where it was."""

import time
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from portal.audit.chain import append
from portal.audit.models import Actor
from portal.readings import due_for_refresh, read_again
from portal.registry.models import Kind

KINDS = [Kind.LOAN, Kind.LINE, Kind.APPLICATION]


class Command(BaseCommand):
    """``manage.py refresh_portfolio --kind loan --older-than 24 --rate 10``"""

    help = "Read every known loan, line, line application and repayment list again."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--kind", choices=[kind.value for kind in KINDS], help="only this kind; all without it"
        )
        parser.add_argument(
            "--older-than", type=float, default=24, help="only copies older than so many hours"
        )
        parser.add_argument("--rate", type=float, default=10, help="calls a second at most")

    def handle(self, *args: Any, kind: str | None, older_than: float, rate: float, **options: Any) -> None:
        if rate <= 0 or older_than < 0:
            raise CommandError("--rate must be above 0 and --older-than 0 or more.")
        actor = Actor.system("refresh")
        limit = timezone.now() - timedelta(hours=older_than)
        records = due_for_refresh([kind] if kind else KINDS, older_than=limit)
        failed = 0
        for number, record in enumerate(records, 1):
            started = time.monotonic()
            failed += not read_again(actor, record)
            if number % 25 == 0 or number == len(records):
                self.stdout.write(f"{number} of {len(records)} read, {failed} failed")
            time.sleep(max(0.0, 1 / rate - (time.monotonic() - started)))
        append(actor, "lookup.refresh_portfolio", detail={"read": len(records), "failed": failed})
        self.stdout.write(f"Done: {len(records)} read, {failed} failed.")
