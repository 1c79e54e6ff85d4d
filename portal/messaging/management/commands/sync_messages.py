"""Saves the lending service's messages; it resumes where it was stopped."""

import time
from datetime import date, timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from portal.audit.models import Actor
from portal.gateway.client import client_for
from portal.messaging.models import Run
from portal.messaging.sync import Sync, read_front
from servicing import ServicingError

SYNC_EVERY = timedelta(hours=1)
"""With --follow, everything new since the last unbroken run is read again this often."""


class Command(BaseCommand):
    """``manage.py sync_messages --since 2026-11-01 --follow --interval 5``"""

    help = "Sync messages: read new ones, or compare those of some days or all with the service."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--since", type=iso_day, help="compare the messages from this day on, YYYY-MM-DD")
        parser.add_argument("--until", type=iso_day, help="compare the messages up to this day, YYYY-MM-DD")
        parser.add_argument("--whole", action="store_true", help="compare every message")
        parser.add_argument("--follow", action="store_true", help="keep syncing new messages until stopped")
        parser.add_argument("--interval", type=float, default=5, help="seconds between checks (5)")

    def handle(self, *args: Any, since: date | None, until: date | None, **options: Any) -> None:
        if since and until and since > until:
            raise CommandError("--until is before --since.")
        if options["interval"] <= 0:
            raise CommandError("--interval must be above 0.")
        try:
            self.sync(since, until, is_comparison=bool(since or until or options["whole"]))
            while options["follow"]:
                self.follow(options["interval"])
                self.sync()
        except KeyboardInterrupt:
            self.stdout.write("Stopped. The next run continues here.")

    def sync(
        self, since: date | None = None, until: date | None = None, *, is_comparison: bool = False
    ) -> None:
        """Read new messages or compare them, and print how many there were."""
        sync = Sync(Actor.system("sync"), since=since, until=until, report=self.report)
        try:
            run = sync.compare() if is_comparison else sync.read_missing()
        except ServicingError as error:
            raise CommandError(f"{error} The next run continues where this one stopped.") from None
        gone = f" {run.gone:,} gone at the service." if run.gone else ""
        self.stdout.write(
            f"Done: {run.added:,} new, {run.already_here:,} already saved, {run.claimed:,} read.{gone}"
        )
        if run.unusable:
            self.stdout.write(f"Without a usable ID, so not saved: {run.unusable:,} ({run.unusable_names}).")
        if run.filters_ignored:
            self.stdout.write("The service ignored the dates, so the whole list was read.")

    def follow(self, interval: float) -> None:
        """Read new messages as they arrive; retry if the service does not answer."""
        client, end = client_for(Actor.system("sync")), time.monotonic() + SYNC_EVERY.total_seconds()
        while time.monotonic() < end:
            time.sleep(interval)
            try:
                added = read_front(client)
            except ServicingError as error:
                self.stderr.write(str(error))
                continue
            if added:
                self.stdout.write(f"{added:,} new")

    def report(self, run: Run) -> None:
        """Print one line for each batch."""
        day = f"{run.day}: " if run.day else ""
        self.stdout.write(f"{day}{run.added:,} of {run.missing:,} missing messages saved")


def iso_day(text: str) -> date:
    """A day for --since or --until; argparse turns the error into a sentence."""
    return date.fromisoformat(text)
