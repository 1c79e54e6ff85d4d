"""Deletes data whose retention time has passed, but never the audit trail."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand
from django.utils import timezone

from portal.accounts.outbox import forget_old_mail
from portal.audit.chain import append
from portal.audit.models import Actor, PageView, RemoteCall
from portal.borrowers.models import Draft
from portal.jobs.queue import forget_old_jobs
from portal.lookup.models import Upload
from portal.records.store import delete_old_snapshots

SLICE = 5_000


class Command(BaseCommand):
    """``manage.py forget_old``; the worker does the same once a day."""

    help = "Delete drafts, uploads, earlier copies, calls, page views, jobs and sessions that expired."

    def handle(self, *args: Any, **options: Any) -> None:
        gone = dict.fromkeys(FORGETTERS, 0)
        try:
            for name, forget in FORGETTERS.items():
                gone[name] = forget()
        finally:
            append(Actor.system("retention"), "operations.forget_old", detail=gone)
        call_command("clearsessions")
        words = (
            "{drafts} drafts, {uploads} uploads, {snapshots} earlier answers, {calls} calls, {views} page views, "
            "{jobs} jobs"
        )
        self.stdout.write(f"Deleted: {words.format(**gone)}.")


def forget_old_calls() -> int:
    """Delete old recorded calls in small batches, so that other writers don't wait for all of them."""
    old = RemoteCall.objects.filter(at__lt=timezone.now() - timedelta(days=settings.CALL_DAYS))
    forgotten = 0
    while keys := list(old.order_by("at").values_list("pk", flat=True)[:SLICE]):
        forgotten += RemoteCall.objects.filter(pk__in=keys).delete()[0]
    return forgotten


def forget_old_views() -> int:
    """Delete old page views in small batches."""
    old = PageView.objects.filter(last_at__lt=timezone.now() - timedelta(days=settings.PAGE_VIEW_DAYS))
    forgotten = 0
    while keys := list(old.order_by("last_at").values_list("pk", flat=True)[:SLICE]):
        forgotten += PageView.objects.filter(pk__in=keys).delete()[0]
    return forgotten


# Each batch commits by itself: in one transaction nobody else could write until the end.
FORGETTERS: dict[str, Callable[[], int]] = {
    "drafts": Draft.objects.forget_old,
    "uploads": Upload.objects.forget_old,
    "snapshots": delete_old_snapshots,
    "calls": forget_old_calls,
    "views": forget_old_views,
    "jobs": forget_old_jobs,
    "mail": forget_old_mail,
}
