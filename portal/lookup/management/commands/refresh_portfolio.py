"""Refreshes every account from the command line; a worker does the same in the background."""

from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from portal.audit.chain import append
from portal.audit.models import Actor
from portal.lookup.tasks import REFRESHED_KINDS, accounts_to_refresh, refresh_accounts


class Command(BaseCommand):
    """``manage.py refresh_portfolio --kind loan --older-than 24 --rate 10``"""

    help = "Refresh all loans, lines, line applications and repayment lists on file."

    def add_arguments(self, parser: CommandParser) -> None:
        kinds = [kind.value for kind in REFRESHED_KINDS]
        parser.add_argument("--kind", choices=kinds, help="only this kind (default: all)")
        parser.add_argument(
            "--older-than", type=float, default=24, help="only copies older than this many hours"
        )
        parser.add_argument("--rate", type=float, help="most calls per second (READS_PER_MINUTE)")

    def handle(
        self, *args: Any, kind: str | None, older_than: float, rate: float | None, **options: Any
    ) -> None:
        if (rate is not None and rate <= 0) or older_than < 0:
            raise CommandError("--rate must be above 0; --older-than must be 0 or more.")
        actor = Actor.system("refresh")
        records = accounts_to_refresh(kind or "", timezone.now() - timedelta(hours=older_than))
        failed = 0
        for number, is_read in enumerate(refresh_accounts(actor, records, rate=rate), 1):
            failed += not is_read
            if number % 25 == 0 or number == len(records):
                self.stdout.write(f"{number} of {len(records)} refreshed, {failed} failed")
        append(actor, "lookup.refresh_portfolio", detail={"read": len(records), "failed": failed})
        self.stdout.write(f"Done: {len(records)} refreshed, {failed} failed.")
