"""Deleting old drafts, answers, calls and jobs."""

from datetime import timedelta
from io import StringIO

import pytest
import time_machine
from django.conf import LazySettings
from django.core.management import call_command
from django.test import Client as Browser
from django.utils import timezone

from portal.accounts.models import User
from portal.audit.models import Entry, RemoteCall
from portal.borrowers.models import Draft
from portal.core.business_date import business_date
from portal.jobs import queue
from portal.jobs.models import Job, Worker
from portal.jobs.queue import start_job
from portal.lookup.tasks import refresh_portfolio
from portal.records.models import Borrower, Kind, PastDueChange, Snapshot
from servicing.sandbox import Sandbox
from tests import given

pytestmark = [pytest.mark.postgres, pytest.mark.django_db]


@pytest.fixture
def record(portal_service: Sandbox, settings: LazySettings) -> Borrower:
    """A borrower whose email changed 20 and 10 days ago, while answers are kept for five days."""
    settings.SNAPSHOT_DAYS = 5
    user = portal_service.world.borrower()
    for number in range(3):
        found = given.save_answer(user | {"email": f"mail{number}@north.example"})
    for days, snapshot in zip((10, 20), found.answer.snapshots.all(), strict=True):
        Snapshot.objects.filter(pk=snapshot.pk).update(last_at=timezone.now() - timedelta(days=days))
    return found


def forget() -> str:
    out = StringIO()
    call_command("forget_old", stdout=out)
    return out.getvalue()


def test_old_answers_are_deleted_except_the_newest(record: Borrower) -> None:
    newest = record.answer.snapshots.first()
    assert "0 drafts, 0 uploads, 1 earlier answers" in forget()
    assert list(record.answer.snapshots.all()) == [newest]
    assert "0 drafts, 0 uploads, 0 earlier answers" in forget()


def test_old_past_due_changes_are_deleted(record: Borrower) -> None:
    loan = given.account(Kind.LOAN, record, "loan-1")
    days = [business_date() - timedelta(days=number) for number in (4, 7)]
    recent, _ = (PastDueChange.objects.create(record=loan, day=day, is_cured=False) for day in days)
    forget()
    assert list(PastDueChange.objects.all()) == [recent]


def test_old_drafts_are_deleted(servicer: Browser, settings: LazySettings) -> None:
    old, _ = (Draft.objects.create(owner=User.objects.get()) for _ in range(2))
    Draft.objects.filter(pk=old.pk).update(updated_at=timezone.now() - timedelta(days=31))
    assert "1 drafts" in forget()
    assert Draft.objects.exclude(pk=old.pk).count() == Draft.objects.count() == 1


def test_deletions_are_recorded_in_the_trail(record: Borrower) -> None:
    before = Entry.objects.count()
    forget()
    assert Entry.objects.count() == before + 1
    assert Entry.objects.get(action="operations.forget_old").detail == {
        "drafts": 0,
        "uploads": 0,
        "snapshots": 1,
        "calls": 0,
        "views": 0,
        "jobs": 0,
        "mail": 0,
    }


def test_old_calls_and_finished_jobs_are_deleted(portal_service: Sandbox) -> None:
    open_job, finished = start_job(refresh_portfolio), Job.objects.create(name="old", state="done")
    RemoteCall.objects.create(operation="loans.get", outcome="answered", duration_ms=1)
    Worker.objects.create(id="gone", beat_at=timezone.now())
    with time_machine.travel(timedelta(days=91)):
        assert "1 calls, 0 page views, 1 jobs" in forget()
    assert (Job.objects.get(), Worker.objects.count()) == (open_job, 0)
    assert not Job.objects.filter(pk=finished.pk).exists()


@pytest.mark.slow
def test_the_worker_deletes_old_data_once_a_day(portal_service: Sandbox, settings: LazySettings) -> None:
    settings.REFRESH_MINUTES = settings.MESSAGE_SYNC_MINUTES = 0
    for hours in (0, 23, 25):
        with time_machine.travel(timedelta(hours=hours)):
            queue.start_scheduled_jobs()
            call_command("work", batch=True)
    assert Entry.objects.filter(action="operations.forget_old").count() == 2
