"""Deletes what is kept for a time only, once that time is over: drafts and earlier answers, never the audit trail."""

from typing import Any

from django.core.management.base import BaseCommand
from django.db import transaction

from portal.audit.chain import append
from portal.audit.models import Actor
from portal.borrowers.models import Draft
from portal.registry.retention import forget_old_snapshots


class Command(BaseCommand):
    """``manage.py forget_old``, once a day from cron."""

    help = "Delete drafts older than DRAFT_DAYS and earlier answers older than SNAPSHOT_DAYS."

    def handle(self, *args: Any, **options: Any) -> None:
        with transaction.atomic():
            gone = {"drafts": Draft.objects.forget_old(), "snapshots": forget_old_snapshots()}
            append(Actor.system("retention"), "operations.forget_old", detail=gone)
        self.stdout.write(f"Deleted: {gone['drafts']} drafts, {gone['snapshots']} earlier answers.")
