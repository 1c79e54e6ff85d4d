"""Tests that nothing waits for an hour after the system clock is set back by an hour."""

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from allauth.usersessions.models import UserSession
from django.conf import LazySettings
from django.core.cache import cache
from django.db.models import QuerySet
from django.test import Client as Browser
from django.utils import timezone

from portal.accounts.models import OutgoingMail
from portal.accounts.outbox import give_up
from portal.audit.models import Entry
from portal.audit.service_health import MAX_UNANSWERED_TRIES, CircuitBreaker, current_outage
from portal.jobs import queue
from portal.jobs.execution import claim, worker_id
from portal.jobs.models import Job, Schedule, Worker, lease
from portal.jobs.queue import start_job
from portal.jobs.status import jobs_status
from portal.messaging.coverage import check_days
from portal.messaging.tasks import sync
from portal.registry.models import Record
from servicing import Client
from servicing.sandbox import Sandbox
from tests import given
from tests.portal.jobs.scripted import SCRIPTS, scripted
from tests.portal.pages import panel

HOUR = timedelta(hours=1)


def set_clock_back() -> Any:
    return time_machine.travel(timezone.now() - HOUR)


@pytest.fixture
def loan(portal_service: Sandbox) -> Record:
    return given.loan(portal_service, given.borrower(portal_service), amount="12345.00")


def test_the_circuit_breaker_allows_requests(portal_service: Sandbox, viewer: Browser, loan: Record) -> None:
    for _ in range(MAX_UNANSWERED_TRIES):
        CircuitBreaker().record_result(answered=False)
    assert not CircuitBreaker().allows_request()
    with set_clock_back():
        assert "12,345.00" in panel(viewer, loan.get_absolute_url(), "loan")
        assert current_outage() is None


def test_saved_copies_are_refreshed(portal_service: Sandbox, viewer: Browser, loan: Record) -> None:
    panel(viewer, loan.get_absolute_url(), "loan-repayments")
    portal_service.world.repayment(loan.uuid, amount="777.00")
    with set_clock_back():
        assert "$777.00" in panel(viewer, loan.get_absolute_url(), "loan-repayments")


def test_a_view_is_recorded(viewer: Browser, loan: Record) -> None:
    view_entries: QuerySet[Entry] = Entry.objects.filter(action="loans.detail")
    viewer.get(loan.get_absolute_url())
    with set_clock_back():
        viewer.get(loan.get_absolute_url())
        viewer.get(loan.get_absolute_url())
    assert view_entries.count() == 2


def test_a_session_gets_no_extra_time(viewer: Browser, settings: LazySettings) -> None:
    viewer.get("/loans/")
    with set_clock_back():
        answer = viewer.get("/accounts/session/", headers={"X-Background": "1"})
        assert answer.json()["left"] <= settings.SESSION_IDLE_MINUTES * 60
        row = UserSession.objects.get()
        assert max(row.last_seen_at, row.created_at) <= timezone.now()


def test_cached_values_are_cleared(viewer: Browser) -> None:
    viewer.get("/healthz")
    cache.set("test", "old", 5)
    with set_clock_back():
        viewer.get("/healthz")
        assert cache.get("test") is None
        cache.set("test", "new", 5)
        viewer.get("/healthz")
        assert cache.get("test") == "new"
    cache.clear()


@pytest.mark.django_db
def test_mail_of_a_lost_worker_becomes_unknown() -> None:
    OutgoingMail.objects.create(key="a", address="a@b.example", sealed="x", state="sending")
    give_up()
    assert OutgoingMail.objects.get().state == "sending"
    with set_clock_back():
        give_up()
    assert OutgoingMail.objects.get().state == "unknown"


def test_message_days_are_checked_again(portal_service: Sandbox, service_client: Client) -> None:
    today = timezone.localdate()
    check_days(service_client, today, today)
    assert check_days(service_client, today, today) == 0
    with set_clock_back():
        assert check_days(service_client, today, today) == 1


@pytest.mark.django_db
class TestBackgroundWork:
    @pytest.fixture
    def job(self) -> Job:
        SCRIPTS["nothing"] = lambda progress: None
        return start_job(scripted, script="nothing")

    def test_a_lost_workers_job_waits_for_another_worker(self, job: Job) -> None:
        claim(str(job.pk))
        Job.objects.update(worker="lost")
        with set_clock_back():
            queue.recover_lost_jobs()
            assert Job.objects.get().state == "waiting"

    def test_a_running_job_keeps_its_worker_and_renews_its_lease(self, job: Job) -> None:
        claim(str(job.pk))
        with set_clock_back():
            queue.recover_lost_jobs()
            leased = Job.objects.get()
            assert (leased.state, leased.worker) == ("running", worker_id())
            assert leased.lease_until
            assert leased.lease_until <= timezone.now() + lease()

    def test_a_job_waiting_to_retry_is_sent(self, job: Job) -> None:
        due_at = Job.objects.get().due_at
        with set_clock_back():
            queue.send_due_jobs()
            assert Job.objects.get().due_at < due_at - HOUR / 2

    def test_scheduled_jobs_start(self, settings: LazySettings) -> None:
        settings.MESSAGE_SYNC_MINUTES = 5
        queue.start_scheduled_jobs()
        first_start = Schedule.objects.get(name=sync.name).begun_at
        with set_clock_back():
            queue.start_scheduled_jobs()
            second_start = Schedule.objects.get(name=sync.name).begun_at
        assert first_start
        assert second_start
        assert second_start < first_start

    def test_a_lost_worker_does_not_count_as_working(self) -> None:
        Worker.objects.create(id="gone", beat_at=timezone.now())
        assert jobs_status().is_working
        with set_clock_back():
            assert not jobs_status().is_working

    def test_a_worker_with_a_fast_clock_counts_as_working(self) -> None:
        Worker.objects.create(id="ahead", beat_at=timezone.now() + timedelta(seconds=1))
        assert jobs_status().is_working
