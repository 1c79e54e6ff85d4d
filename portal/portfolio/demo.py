"""Gives a demo a past: its sandbox's days pass one by one, each read at its end as the portal reads, and written."""

import time
from collections.abc import Iterator
from datetime import date, timedelta
from io import StringIO
from itertools import islice

from django.conf import settings
from django.core.management import call_command
from django.utils import timezone

from portal.audit.models import Actor
from portal.collections.management.commands.demo_collections import let_days_pass
from portal.core.business_date import business_date
from portal.gateway.reading import LiveCopy, due_for_refresh, read_if_old
from portal.jobs.execution import Progress, run_job
from portal.jobs.kinds import JobKind
from portal.jobs.models import Job
from portal.jobs.queue import start_job, take
from portal.records.figures import ACCOUNTS
from portal.ui import wording

PAST_DAYS = 90
WAIT_SECONDS = 0.2
AT_ONCE = 8
"""The accounts that are read in parallel."""


def is_demo() -> bool:
    return bool(settings.DEBUG and settings.BUSINESS_DATE_FROM == "sandbox")


def last_day() -> date:
    """The day that it ends with, if it begins today."""
    return business_date() + timedelta(days=PAST_DAYS)


def add_past(progress: Progress, until: date, write_days: JobKind) -> None:
    """Let the days up to this one pass. A second attempt continues with the day that the first one reached."""
    progress.resume((until - business_date()).days)
    while (day := business_date()) < until:
        _finish(write_days, progress)
        for copies in _batches():
            read_if_old(Actor.system("refresh"), copies, force=True)
        let_days_pass(1)
        progress.step(words=wording.short_day(day))
    # Messages have the days on which payments were returned.
    call_command("sync_messages", stdout=StringIO())
    _finish(write_days, progress)


def _finish(kind: JobKind, progress: Progress) -> None:
    """Have a job done, here or by the worker that has it already: two never do it at once."""
    job = start_job(kind)
    while job.state in Job.OPEN:
        taken = take(job) if job.due_at <= timezone.now() else None
        if taken:
            run_job(taken)
        else:
            time.sleep(WAIT_SECONDS)
        progress.step(0)
        job.refresh_from_db()


def _batches() -> Iterator[list[LiveCopy]]:
    remaining = iter(due_for_refresh(ACCOUNTS, older_than=timezone.now()))
    return iter(lambda: list(islice(remaining, AT_ONCE)), [])
