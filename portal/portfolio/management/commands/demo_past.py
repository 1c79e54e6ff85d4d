"""Has the worker of a running demo add 90 days to its past."""

import time
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from portal.jobs.queue import start_job
from portal.portfolio import demo, tasks

POLL_SECONDS = 1


class Command(BaseCommand):
    """``manage.py demo_past`` (what ``make demo-past`` calls)"""

    help = "Let 90 days pass in a running demo, and write the book of each (DEBUG only)."

    def handle(self, *args: Any, **options: Any) -> None:
        if not demo.is_demo():
            raise CommandError("Demo data are for local use: they need DEBUG and the sandbox’s date.")
        job = start_job(tasks.add_past, until=demo.last_day().isoformat())
        while job.is_open:
            time.sleep(POLL_SECONDS)
            job.refresh_from_db()
            self.stdout.write(f"{job.done} of {job.total or demo.PAST_DAYS} days {job.words}", ending="\r")
        self.stdout.write(f"{job.get_state_display()}: {job.done} days. {job.words}")
