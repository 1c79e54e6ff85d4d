"""Deletes what is kept for a time only, once that time is over; the audit trail never."""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand
from django.db import transaction
from django.utils import timezone

from portal.audit.chain import append
from portal.audit.models import Actor, RemoteCall
from portal.borrowers.models import Draft
from portal.jobs.upkeep import forget_old_jobs
from portal.lookup.models import Upload
from portal.registry.retention import forget_old_snapshots


class Command(BaseCommand):
    """``manage.py forget_old``; the worker does the same once a day."""

    help = "Delete old drafts, uploads, earlier answers, calls, jobs and ended sessions, as the settings say."

    def handle(self, *args: Any, **options: Any) -> None:
        old = timezone.now() - timedelta(days=settings.CALL_DAYS)
        with transaction.atomic():
            gone = {
                "drafts": Draft.objects.forget_old(),
                "uploads": Upload.objects.forget_old(),
                "snapshots": forget_old_snapshots(),
                "calls": RemoteCall.objects.filter(at__lt=old).delete()[0],
                "jobs": forget_old_jobs(),
            }
            append(Actor.system("retention"), "operations.forget_old", detail=gone)
        call_command("clearsessions")
        words = "{drafts} drafts, {uploads} uploads, {snapshots} earlier answers, {calls} calls, {jobs} jobs"
        self.stdout.write(f"Deleted: {words.format(**gone)}.")
