"""Tests of the gateway to the lending service: what writes and reads record, and how failures look."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from django.conf import LazySettings
from django.db import connections
from django.http import HttpResponse
from django.test import Client as Browser
from django.utils import timezone
from requests import Session

from portal.accounts.models import User
from portal.accounts.roles import Role
from portal.audit.models import Entry, RemoteCall, WriteIntent
from portal.audit.writes import close_stale_writes
from portal.gateway import client as gateway
from portal.records.models import Account, Application, Borrower, Kind
from servicing.sandbox import Sandbox
from tests import databases, given
from tests.conftest import CLIENT_ID, SECRET, browser_of, htmx
from tests.servicing.wire import Wire, response

pytestmark = [pytest.mark.postgres, pytest.mark.urls("tests.portal.trial_urls")]


@pytest.fixture
def borrower(portal_service: Sandbox) -> Borrower:
    return given.borrower(portal_service)


@pytest.fixture
def unreachable(portal_service: Sandbox, settings: LazySettings) -> None:
    """Point the portal at a port where no server listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        settings.SERVICING_URL = f"http://127.0.0.1:{listener.getsockname()[1]}"
    gateway.client.cache_clear()


def submit(browser: Browser, borrower: Borrower, *, amount: str = "1200.00", **extra: Any) -> HttpResponse:
    typed = {"submit_id": str(uuid4()), "borrower": borrower.uuid, "amount": amount}
    headers = extra.pop("headers", None)
    return browser.post("/trial/submit/", typed | extra, headers=headers)


def count_submissions(sandbox: Sandbox) -> int:
    return [call.operation for call in sandbox.calls].count("applications.submit")


def entries_of(intent: WriteIntent) -> list[tuple[str, str]]:
    return list(Entry.objects.filter(intent_id=intent.pk).order_by("id").values_list("phase", "result"))


class TestWrite:
    def test_a_confirmed_write_leaves_one_attempt_and_one_outcome(
        self, servicer: Browser, borrower: Borrower
    ) -> None:
        answer = submit(servicer, borrower)
        intent = WriteIntent.objects.get()
        assert (answer.status_code, intent.state, intent.status) == (200, "confirmed", 200)
        assert (intent.subject_kind, intent.subject_uuid) == ("application", answer.content.decode())
        assert entries_of(intent) == [("attempt", ""), ("outcome", "confirmed")]

    def test_the_answer_and_the_call_are_saved(self, servicer: Browser, borrower: Borrower) -> None:
        answer = submit(servicer, borrower)
        record = Application.objects.get()
        call = RemoteCall.objects.get()
        assert (record.uuid, record.borrower_uuid) == (answer.content.decode(), borrower.uuid)
        assert record.created_by == "Servicer (servicer)"
        assert (call.operation, call.outcome, call.status) == ("applications.submit", "confirmed", 200)
        assert call.intent_id == WriteIntent.objects.get().pk
        assert call.request_id.startswith(answer["X-Request-ID"])

    @pytest.mark.slow
    def test_durations_are_recorded_in_milliseconds(
        self, servicer: Browser, borrower: Borrower, portal_service: Sandbox
    ) -> None:
        portal_service.fail_next("applications.submit", delay=0.5)
        submit(servicer, borrower)
        duration = RemoteCall.objects.get().duration_ms
        assert 500 <= duration < 60_000
        assert Entry.objects.get(phase="outcome").detail["duration_ms"] == duration

    def test_entries_record_the_actor_request_and_reason(self, servicer: Browser, borrower: Borrower) -> None:
        answer = submit(servicer, borrower, headers={"User-Agent": "Desk browser"})
        attempt, outcome = Entry.objects.exclude(phase="event").order_by("id")
        assert attempt.detail == {"request": {"amount": "1200.00"}}
        assert outcome.detail["answer"]["amount"] == "1200.00"
        for entry in (attempt, outcome):
            assert (entry.actor_name, entry.actor_role, entry.ip) == (
                "Servicer (servicer)",
                "servicer",
                "127.0.0.1",
            )
            assert (entry.action, entry.reason) == ("applications.submit", "asked by phone")
            assert entry.borrower_uuid == borrower.uuid
            assert (entry.request_id, entry.user_agent) == (answer["X-Request-ID"], "Desk browser")

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("fault", "state", "status"),
        [
            ({"status": 400, "message": "amount is too large"}, "rejected", 422),
            ({"body": {"error": "amount is too large"}}, "rejected", 422),
            ({"body": {"message": "Accepted for processing"}}, "unknown", 303),
            ({"status": 404}, "rejected", 404),
            ({"status": 403}, "rejected", 403),
            ({"status": 409}, "rejected", 409),
            ({"status": 401}, "rejected", 502),
            ({"status": 503}, "unknown", 303),
            ({"cut_before": True}, "unknown", 303),
            ({"cut_after_commit": True}, "unknown", 303),
            ({"truncate": True}, "unknown", 303),
            ({"html": True}, "unknown", 303),
            ({"changes": {"uuid": None}}, "unknown", 303),
        ],
        ids=str,
    )
    def test_every_failure_records_one_outcome(
        self,
        servicer: Browser,
        borrower: Borrower,
        portal_service: Sandbox,
        fault: dict[str, Any],
        state: str,
        status: int,
    ) -> None:
        portal_service.fail_next("applications.submit", **fault)
        answer = submit(servicer, borrower)
        intent = WriteIntent.objects.get()
        assert (answer.status_code, intent.state) == (status, state)
        assert entries_of(intent) == [("attempt", ""), ("outcome", state)]
        assert RemoteCall.objects.get().status == intent.status
        assert not Application.objects.exists()

    def test_an_unreachable_service_leaves_the_write_not_sent(
        self, servicer: Browser, borrower: Borrower, unreachable: None
    ) -> None:
        answer = submit(servicer, borrower)
        intent = WriteIntent.objects.get()
        assert (answer.status_code, intent.state, intent.status) == (503, "not_sent", None)
        assert entries_of(intent) == [("attempt", ""), ("outcome", "not_sent")]
        assert "Nothing was sent." in answer.content.decode()

    def test_the_services_message_is_quoted(
        self, servicer: Browser, borrower: Borrower, portal_service: Sandbox
    ) -> None:
        portal_service.fail_next("applications.submit", status=400, message="amount is <too> large")
        page = submit(servicer, borrower).content.decode()
        assert "<q>amount is &lt;too&gt; large</q>" in page
        assert WriteIntent.objects.get().message == "amount is <too> large"

    def test_an_unknown_outcome_links_to_the_write(
        self, servicer: Browser, borrower: Borrower, portal_service: Sandbox
    ) -> None:
        portal_service.fail_next("applications.submit", cut_after_commit=True)
        answer = submit(servicer, borrower)
        assert answer["Location"] == WriteIntent.objects.get().get_absolute_url()
        page = servicer.get(answer["Location"]).content.decode()
        assert "may or may not have gone through" in page

    def test_locally_rejected_input_is_never_sent(
        self, servicer: Browser, borrower: Borrower, portal_service: Sandbox
    ) -> None:
        answer = submit(servicer, borrower, amount="-5")
        assert answer.status_code == 422
        assert "amount" in answer.content.decode()
        assert (portal_service.calls, WriteIntent.objects.count()) == ([], 0)

    def test_a_write_without_a_form_has_an_intent(
        self, servicer: Browser, borrower: Borrower, portal_service: Sandbox
    ) -> None:
        loan = portal_service.world.loan(borrower.uuid)
        servicer.post("/trial/submit-without-a-form/", {"borrower": borrower.uuid, "loan": loan["uuid"]})
        intent = WriteIntent.objects.get()
        assert (intent.state, intent.label) == ("confirmed", "applications.submit")
        read, written = RemoteCall.objects.all()
        assert (read.operation, read.intent_id) == ("loans.get", None)
        assert (written.operation, written.intent_id) == ("applications.submit", intent.pk)


class TestSendingOnce:
    def test_the_same_form_sends_once(
        self, servicer: Browser, borrower: Borrower, portal_service: Sandbox
    ) -> None:
        submit(servicer, borrower, submit_id="one")
        again = submit(servicer, borrower, submit_id="one", amount="9000.00")
        assert (again.status_code, count_submissions(portal_service)) == (409, 1)
        assert WriteIntent.objects.get().get_absolute_url() in again.content.decode()

    @pytest.mark.slow
    @pytest.mark.django_db(transaction=True)
    def test_two_simultaneous_clicks_send_once(
        self, servicer: Browser, borrower: Borrower, portal_service: Sandbox
    ) -> None:
        portal_service.fail_next("applications.submit", delay=0.5, times=None)
        barrier = threading.Barrier(2)
        statuses: list[int] = []

        def click(browser: Browser) -> None:
            barrier.wait()
            statuses.append(submit(browser, borrower, submit_id="one").status_code)
            connections.close_all()

        threads = [threading.Thread(target=click, args=[browser_of(Role.SERVICER)]) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (sorted(statuses), count_submissions(portal_service)) == ([200, 409], 1)
        assert entries_of(WriteIntent.objects.get()) == [("attempt", ""), ("outcome", "confirmed")]

    def test_a_duplicate_is_rejected_while_the_outcome_is_unknown(
        self, servicer: Browser, borrower: Borrower, portal_service: Sandbox
    ) -> None:
        portal_service.fail_next("applications.submit", cut_after_commit=True)
        submit(servicer, borrower, once="on")
        again = submit(servicer, borrower, once="on")
        assert (again.status_code, count_submissions(portal_service)) == (409, 1)
        assert WriteIntent.objects.get().get_absolute_url() in again.content.decode()

    def test_a_duplicate_is_sent_after_a_confirmed_write(
        self, servicer: Browser, borrower: Borrower, portal_service: Sandbox
    ) -> None:
        submit(servicer, borrower, once="on")
        assert submit(servicer, borrower, once="on").status_code == 200

    def test_a_different_write_is_sent_while_one_is_open(
        self, servicer: Browser, borrower: Borrower, portal_service: Sandbox
    ) -> None:
        portal_service.fail_next("applications.submit", cut_after_commit=True)
        submit(servicer, borrower, once="on")
        assert submit(servicer, borrower, once="on", amount="1300.00").status_code == 200


def branch_session() -> Session:
    """Create the session that SERVICING_SESSION names."""
    session = Session()
    session.headers["X-Branch"] = "7"
    return session


class TestConnection:
    def test_calls_use_a_proxy_or_a_custom_session(self, viewer: Browser, settings: LazySettings) -> None:
        with Wire() as wire:
            wire.answer(response('{"uuid": "l-1", "amount": 1}'))
            settings.SERVICING_URL, settings.SERVICING_PROXY = "http://lender.example", wire.url
            gateway.client.cache_clear()
            assert gateway.client().loans.get("b-1", "l-1").uuid == "l-1"

            settings.SERVICING_PROXY, settings.SERVICING_SESSION = "", f"{__name__}.branch_session"
            settings.SERVICING_URL = wire.url
            gateway.client.cache_clear()
            gateway.client().loans.get("b-1", "l-1")

        assert wire.heads[0].startswith("get http://lender.example/v1/users/b-1/loan/l-1 ")
        assert "x-branch: 7" in wire.heads[1]


class TestPortalFailures:
    def test_a_write_that_cannot_be_recorded_is_not_sent(
        self, servicer: Browser, borrower: Borrower, portal_service: Sandbox
    ) -> None:
        databases.reject_inserts("audit_entry")
        with pytest.raises(Exception, match="the disk is full"):
            submit(servicer, borrower)
        assert (portal_service.calls, WriteIntent.objects.count()) == ([], 0)

    def test_a_write_inside_a_transaction_is_not_sent(
        self, servicer: Browser, borrower: Borrower, portal_service: Sandbox
    ) -> None:
        typed = {"submit_id": "one", "borrower": borrower.uuid, "amount": "1200"}
        with pytest.raises(RuntimeError, match="durable"):
            servicer.post("/trial/submit-in-a-transaction/", typed)
        assert portal_service.calls == []

    @pytest.mark.slow
    @pytest.mark.django_db(transaction=True)
    def test_a_write_of_a_killed_process_becomes_unknown(
        self, servicer: Browser, borrower: Borrower, portal_service: Sandbox
    ) -> None:
        portal_service.fail_next("applications.submit", delay=60)
        process = subprocess.Popen(
            [sys.executable, "-c", SUBMIT_SCRIPT, borrower.uuid],
            env=os.environ | process_environment(portal_service),
        )
        wait_until(lambda: count_submissions(portal_service) == 1)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        intent = WriteIntent.objects.get()
        assert (intent.state, entries_of(intent), close_stale_writes()) == ("sending", [("attempt", "")], 0)

        WriteIntent.objects.update(created_at=timezone.now() - timedelta(minutes=5))
        assert (close_stale_writes(), close_stale_writes()) == (1, 0)
        intent.refresh_from_db()
        assert (intent.state, entries_of(intent)) == ("unknown", [("attempt", ""), ("outcome", "unknown")])
        outcome = Entry.objects.get(intent_id=intent.pk, phase="outcome")
        assert (outcome.detail, outcome.actor_name) == ({"note": "no outcome was recorded in time"}, "system")

    def test_a_late_answer_keeps_the_first_outcome(
        self, servicer: Browser, borrower: Borrower, portal_service: Sandbox
    ) -> None:
        watcher = gateway.Watcher(gateway.Actor.system("late"))
        service_client = gateway.client().with_watcher(SlowWatcher(watcher))
        application = service_client.applications.submit(borrower.uuid, amount=Decimal(1200))
        intent = WriteIntent.objects.get()
        assert (intent.state, intent.subject_uuid) == ("confirmed", application.uuid)
        assert entries_of(intent) == [("attempt", ""), ("outcome", "unknown"), ("event", "confirmed")]
        assert Application.objects.exists()


class SlowWatcher:
    """A watcher whose write is closed as stale before its answer arrives."""

    def __init__(self, watcher: gateway.Watcher) -> None:
        self.watcher = watcher
        self.after = watcher.after

    def before(self, call: Any) -> None:
        self.watcher.before(call)
        WriteIntent.objects.update(created_at=timezone.now() - timedelta(minutes=5))
        close_stale_writes()


SUBMIT_SCRIPT = """
import sys, django
django.setup()
from decimal import Decimal
from portal.gateway.client import Actor, client_for
client_for(Actor.system("trial")).applications.submit(sys.argv[1], amount=Decimal("1200.00"))
"""


def process_environment(sandbox: Sandbox) -> dict[str, str]:
    """Return the environment of a process that uses this test's database and sandbox."""
    return {
        "DATABASE_URL": databases.database_url(),
        "SERVICING_URL": sandbox.url,
        "SERVICING_CLIENT_ID": CLIENT_ID,
        "SERVICING_SECRET": SECRET,
    }


def wait_until(condition: Any, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)


class TestRead:
    @pytest.fixture
    def address(self, borrower: Borrower, portal_service: Sandbox) -> str:
        return f"/trial/read/{borrower.uuid}/{portal_service.world.loan(borrower.uuid)['uuid']}/"

    def test_an_answer_and_its_call_are_saved(self, viewer: Browser, address: str) -> None:
        loan = viewer.get(address).content.decode()
        call = RemoteCall.objects.get()
        assert Account.objects.get(kind=Kind.LOAN).uuid == loan
        assert (call.operation, call.outcome, call.tries) == ("loans.get", "answered", 1)
        assert (call.actor_name, call.intent_id) == ("Viewer (viewer)", None)

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("fault", "outcome", "status"),
        [
            ({"status": 500}, "unavailable", 503),
            ({"status": 404}, "rejected", 404),
            ({"status": 403}, "forbidden", 403),
            ({"status": 401}, "forbidden", 502),
            ({"status": 400}, "rejected", 422),
            ({"html": True}, "protocol", 502),
        ],
        ids=str,
    )
    def test_every_failure_has_a_page_and_a_notice(
        self,
        viewer: Browser,
        portal_service: Sandbox,
        address: str,
        fault: dict[str, Any],
        outcome: str,
        status: int,
    ) -> None:
        portal_service.fail_next("loans.get", times=2, **fault)
        page = viewer.get(address)
        notice = viewer.get(address, headers=htmx("loan-rows"))
        assert (page.status_code, notice.status_code) == (status, status)
        assert {call.outcome for call in RemoteCall.objects.all()} == {outcome}
        assert "<html" in page.content.decode()
        assert notice.content.decode().strip().startswith('<section class="sd-card" id="notice">')

    def test_a_boosted_link_receives_the_whole_page(
        self, viewer: Browser, portal_service: Sandbox, address: str
    ) -> None:
        portal_service.fail_next("loans.get", status=404)
        page = viewer.get(address, headers=htmx("body") | {"HX-Boosted": "true"})
        assert "<html" in page.content.decode()

    def test_rejected_credentials_are_logged_with_the_reference(
        self, viewer: Browser, portal_service: Sandbox, address: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        portal_service.fail_next("loans.get", status=401)
        reference = viewer.get(address)["X-Request-ID"]
        assert any(
            r.name == "portal.gateway.failures" and reference in r.getMessage() for r in caplog.records
        )

    def test_an_id_that_would_reach_another_record_is_never_sent(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        answer = viewer.get(f"/trial/read/{borrower.uuid}/%2E%2E/")
        assert (answer.status_code, portal_service.calls) == (422, [])


class TestErrorPages:
    def test_a_missing_role_is_shown_and_recorded(self, viewer: Browser) -> None:
        page = viewer.post("/trial/submit/")
        assert page.status_code == 403
        assert "Requires the servicer or supervisor role" in page.content.decode()
        assert 'id="nav"' in page.content.decode()
        assert 'id="nav"' in viewer.get("/nowhere/").content.decode()
        entry = Entry.objects.get(action="accounts.refused")
        assert (entry.actor_name, entry.subject_label) == ("Viewer (viewer)", "borrowers.create")

    @pytest.mark.django_db
    @pytest.mark.parametrize(
        ("role", "address"),
        [
            (Role.VIEWER, "/admin/"),
            (Role.SERVICER, "/admin/audit/entry/"),
            (Role.AUDITOR, "/admin/accounts/user/add/"),
            (Role.AUDITOR, "/admin/audit/entry/add/"),
        ],
    )
    def test_denied_admin_access_is_recorded_with_its_path(self, role: Role, address: str) -> None:
        assert browser_of(role).get(address).status_code == 403
        assert Entry.objects.get(action="accounts.refused").detail == {"path": address}

    @pytest.mark.parametrize(
        ("address", "status"), [("/trial/submit/", 403), ("/nowhere/", 404), ("/trial/breaks/", 500)]
    )
    def test_each_error_has_a_page_and_a_notice(
        self, portal_service: Sandbox, address: str, status: int
    ) -> None:
        browser = browser_of(Role.VIEWER, raise_request_exception=False)
        page, notice = browser.get(address), browser.get(address, headers=htmx("loan-rows"))
        assert (page.status_code, notice.status_code) == (status, status)
        assert "<html" in page.content.decode()
        assert notice.content.decode().strip().startswith('<section class="sd-card" id="notice">')

    @pytest.mark.parametrize(("environment", "band"), [("live", "LIVE"), ("sandbox", "SANDBOX")])
    def test_error_pages_show_the_environment(
        self, portal_service: Sandbox, settings: LazySettings, environment: str, band: str
    ) -> None:
        settings.SERVICING_ENVIRONMENT = environment
        browser = browser_of(Role.VIEWER, raise_request_exception=False)
        for page in (browser.get("/trial/breaks/"), browser.get("/", headers={"host": "somebody-else"})):
            shown = re.search(r'aria-label="Environment">\s*<span>\s*<b>(\w+)', page.content.decode())
            assert shown
            assert shown[1] == band
            assert "Times shown in" not in page.content.decode()
            assert "Reference r-" in page.content.decode()

    def test_a_form_without_a_csrf_token_asks_to_reload(self, portal_service: Sandbox) -> None:
        browser = browser_of(Role.SERVICER, enforce_csrf_checks=True)
        page = browser.post("/trial/submit/", {"submit_id": "one"})
        assert page.status_code == 403
        assert "reload the page and send the form again" in page.content.decode()


def test_times_use_the_business_or_personal_time_zone(viewer: Browser) -> None:
    assert viewer.get("/trial/zone/").content == b"America/New_York"
    User.objects.update(time_zone="America/Denver")
    assert viewer.get("/trial/zone/").content == b"America/Denver"
