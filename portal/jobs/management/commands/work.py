"""Runs background jobs and keeps the schedule until it is stopped."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from portal.core.database import find_setup_problem, mark_in_use
from portal.jobs import worker


class Command(BaseCommand):
    """``manage.py work``; with ``--batch`` it ends once no job waits."""

    help = "Run background jobs. On SIGTERM the current job finishes its step and is requeued."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--batch", action="store_true", help="stop when no jobs are left")

    def handle(self, *args: Any, batch: bool, **options: Any) -> None:
        if problem := find_setup_problem():
            raise CommandError(problem)
        if batch:
            worker.run_waiting_jobs()
        else:
            mark_in_use()
            worker.work()
