"""How the lending service and the work in the background are doing, and what the platform asks."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.management import call_command
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client as Browser
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from portal.audit.chain import append
from portal.audit.models import Actor, RemoteCall
from portal.audit.service_health import GROUPS, measure_health
from portal.jobs import queue
from portal.jobs.models import Worker
from portal.jobs.queue import start_job
from portal.lookup.tasks import refresh_portfolio
from portal.operations.calls import PAGE_SIZE, path_pattern
from servicing import __version__
from servicing.sandbox import Sandbox
from tests.conftest import SECRET, htmx


def call(operation: str = "loans.get", *, outcome: str = "confirmed", ms: int = 5, hours: float = 0) -> None:
    made = RemoteCall.objects.create(
        operation=operation, outcome=outcome, duration_ms=ms, actor_name="Maya Chen"
    )
    RemoteCall.objects.filter(pk=made.pk).update(at=timezone.now() - timedelta(hours=hours))


def group(browser: Browser, name: str) -> Any:
    return next(one for one in browser.get("/status/").context["groups"] if one.name == name)


def test_before_the_first_call_it_says_so(viewer: Browser) -> None:
    page = " ".join(viewer.get("/status/").content.decode().split())
    assert "No failed calls" in page
    assert page.count("No calls") == len(GROUPS)
    assert "Last failure" not in page


def test_a_real_call_is_listed_with_its_outcome(viewer: Browser, portal_service: Sandbox) -> None:
    viewer.get("/messages/")
    page = " ".join(viewer.get("/status/").content.decode().split())
    assert "messages.list" in page
    assert page.count(">Responding<") == 1


@pytest.mark.parametrize("outcome", ["unavailable", "unknown", "not_sent", "protocol", "forbidden"])
def test_a_call_without_a_usable_answer_is_a_failure(viewer: Browser, outcome: str) -> None:
    call(outcome=outcome)
    assert (group(viewer, "Loans").state, group(viewer, "Loans").failures) == ("bad", 1)
    assert ">Failing<" in " ".join(viewer.get("/status/").content.decode().split())


def test_a_refusal_is_an_answer(viewer: Browser) -> None:
    call("applications.submit", outcome="rejected")
    assert group(viewer, "Applications").state == "ok"


def test_wrong_credentials_show_as_failing(viewer: Browser, portal_service: Sandbox) -> None:
    portal_service.fail_next("messages.list", status=401)
    viewer.get("/messages/")
    assert group(viewer, "Messages").state == "bad"


def test_the_latest_call_decides(viewer: Browser) -> None:
    call(outcome="unavailable", hours=2)
    call(hours=1)
    assert group(viewer, "Loans").state == "ok"
    call(outcome="unavailable")
    assert group(viewer, "Loans").state == "bad"


def test_it_tells_calls_median_and_failures(viewer: Browser) -> None:
    for ms in (3, 900, 5):
        call(ms=ms)
    call(outcome="unavailable", ms=40)
    found = group(viewer, "Loans")
    assert (found.calls, found.median, found.failures) == (4, 40, 1)
    assert found.p95 == 900


def test_yesterday_does_not_count(viewer: Browser) -> None:
    call(outcome="unavailable", hours=25)
    assert group(viewer, "Loans").state == "neutral"


def test_a_call_of_no_group_counts_for_none(portal_service: Sandbox) -> None:
    call("documents.fetch", outcome="unavailable")
    assert not any(one.calls for one in measure_health())


def test_settings_are_set_or_not_and_never_shown(
    admin: Browser, viewer: Browser, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.SERVICING_TOKEN = ""
    monkeypatch.setenv("SERVICING_SECRET", SECRET)
    monkeypatch.setenv("SERVICING_CLIENT_ID_FILE", "/run/secrets/client_id")
    page = " ".join(admin.get("/status/").content.decode().split())
    assert 'SERVICING_SECRET</code><span class="sd-ok">set<' in page
    assert 'SERVICING_CLIENT_ID</code><span class="sd-ok">set<' in page
    assert 'SERVICING_TOKEN</code><span class="sd-null">not set<' in page
    assert 'SERVICING_RATE_UNIT</code><span class="sd-null">default<' in page
    assert SECRET not in page
    # Whoever services loans reads no names of settings.
    assert not re.search("SERVICING_|MAIL_MINUTES", viewer.get("/status/").content.decode())


class TestCalls:
    """The list of calls and what narrows it."""

    @pytest.fixture(autouse=True)
    def calls(self, viewer: Browser) -> None:
        call(ms=5)
        call("messages.list", outcome="unavailable", ms=900)
        call("applications.submit", outcome="rejected", ms=30)
        RemoteCall.objects.filter(operation="loans.get").update(method="GET", status=200, request_id="r-aa-1")
        RemoteCall.objects.filter(operation="messages.list").update(method="GET", request_id="r-bb-1")
        RemoteCall.objects.filter(operation="applications.submit").update(
            method="POST", status=422, request_id="r-aa-2", actor_name="Ana Ortiz", error="too much"
        )

    @pytest.mark.parametrize(
        ("query", "found"),
        [
            ("", "m"), ("outcome=", "aml"), ("method=GET", "ml"), ("call=loans.get", "l"),
            ("status=4", "a"), ("status=200", "l"),
            ("status=none", "m"), ("outcome=failed", "m"), ("outcome=rejected", "a"), ("slower=30", "am"),
            ("by=ortiz", "a"), ("reference=r-aa", "al"), ("method=GET&slower=900", "m"), ("method=PUT", ""),
            ("status=x", ""), ("slower=-1", ""), ("slower=9999999999", ""), ("before=0", ""), ("status=\0", "aml"),
        ],
    )  # fmt: skip
    def test_each_filter_narrows_it(self, viewer: Browser, query: str, found: str) -> None:
        rows = viewer.get(f"/status/?{query}").context["calls"].rows
        assert "".join(row.operation[0] for row in rows) == found

    @pytest.mark.parametrize(("query", "is_open"), [("", False), ("by=ortiz", False), ("slower=30", True)])
    def test_the_rarer_filters_are_folded_until_one_is_set(
        self, viewer: Browser, query: str, *, is_open: bool
    ) -> None:
        page = viewer.get(f"/status/?{query}").content.decode()
        assert ('<details class="sd-more" open>' in page) is is_open

    def test_failures_are_grouped_and_lead_to_their_calls(self, viewer: Browser) -> None:
        call("messages.list", outcome="unavailable")
        first, second = viewer.get("/status/").context["failures"]
        assert (first.operation, first.count, second.words) == ("messages.list", 2, "too much")
        rows = viewer.get(f"/status/{first.query}").context["calls"].rows
        assert {row.operation for row in rows} == {"messages.list"}

    def test_every_call_is_met_once_from_page_to_page(self, viewer: Browser) -> None:
        for _ in range(PAGE_SIZE):
            call()
        first = viewer.get("/status/?outcome=").context["calls"]
        rest = viewer.get(
            f"/status/?outcome=&before={first.older}", headers=htmx("call-rows")
        ).content.decode()
        assert (len(first.rows), rest.count("<tr data-row>"), ">Older" in rest) == (PAGE_SIZE, 3, False)

    def test_what_matches_nothing_says_so(self, viewer: Browser) -> None:
        region = viewer.get("/status/?by=nobody", headers=htmx("call-rows")).content.decode()
        assert "No calls match" in region
        assert "<html" not in region

    def test_an_address_is_shown_by_its_pattern(self) -> None:
        path = (
            "/v1/users/3f2b8c1e-9d47-4a60-b1c5-7e8f90a2d364/loc/9f2b8c1e-9d47-4a60-b1c5-7e8f90a2d364/payments"
        )
        assert path_pattern(path) == "/v1/users/{user}/loc/{loc}/payments"
        assert path_pattern("/v1/webhooks/endpoints/messages") == "/v1/webhooks/endpoints/messages"


class TestBackgroundWork:
    def test_that_no_worker_ever_ran_is_said(self, viewer: Browser) -> None:
        page = " ".join(viewer.get("/status/").content.decode().split())
        assert "No worker is running, and none has run yet. No jobs are waiting." in page

    def test_since_when_none_runs_and_what_waits_is_said(self, viewer: Browser) -> None:
        Worker.objects.create(id="one", beat_at=timezone.now() - timedelta(minutes=5))
        start_job(refresh_portfolio)
        page = " ".join(viewer.get("/status/").content.decode().split())
        assert "5 min ago" in page
        assert "1 job waits, the oldest since" in page

    def test_a_worker_that_beats_is_running(self, viewer: Browser) -> None:
        Worker.objects.create(id="one", beat_at=timezone.now())
        page = " ".join(viewer.get("/status/").content.decode().split())
        assert "1 worker, last seen" in page
        assert "Not running" not in page

    def test_repeated_work_tells_its_last_run_and_its_next(self, viewer: Browser) -> None:
        queue.start_scheduled_jobs()
        call_command("work", batch=True)
        page = " ".join(viewer.get("/status/").content.decode().split())
        assert re.search(r"Done .*\. Next .*in 24 h", page)
        assert "0 of 0" not in page

    def test_who_may_starts_the_refresh_from_here(self, viewer: Browser, supervisor: Browser) -> None:
        assert "/registry/refresh/" not in " ".join(viewer.get("/status/").content.decode().split())
        assert "Refresh all accounts" in " ".join(supervisor.get("/status/").content.decode().split())


class TestTrail:
    def test_it_counts_entries_and_tells_of_the_last_check(self, viewer: Browser) -> None:
        append(Actor.system("test"), "lookup.add")
        assert "Never checked" in " ".join(viewer.get("/status/").content.decode().split())
        append(
            Actor.system("verify"),
            "audit.verify",
            result="broken",
            detail={"problem": "Entry 1 was altered."},
        )
        page = " ".join(viewer.get("/status/").content.decode().split())
        assert "Entry 1 was altered." in page
        assert "Broken" in page

    def test_the_worker_checks_it_once_a_day(self, viewer: Browser) -> None:
        append(Actor.system("test"), "lookup.add")
        queue.start_scheduled_jobs()
        call_command("work", batch=True)
        page = " ".join(viewer.get("/status/").content.decode().split())
        assert "Unbroken" in page
        assert "entries verified" in page


class TestReadyz:
    def test_it_is_ready_without_signing_in_and_tells_of_the_worker(self, anonymous: Browser) -> None:
        answer = anonymous.get("/readyz")
        assert (answer.status_code, answer.content) == (
            200,
            b"database: ok\nmigrations: ok\nwrites: ok\ncache: ok\nworker: not running\n",
        )
        Worker.objects.create(id="one", beat_at=timezone.now())
        assert anonymous.get("/readyz").content.endswith(b"worker: ok\n")

    def test_an_unapplied_migration_is_not_ready(self, anonymous: Browser) -> None:
        MigrationRecorder.Migration.objects.filter(app="jobs").delete()
        answer = anonymous.get("/readyz")
        assert (answer.status_code, b"not applied" in answer.content) == (503, True)


class TestMissing:
    """The product's own page under DEBUG too."""

    @pytest.fixture(autouse=True)
    def debug(self, settings: LazySettings) -> None:
        settings.DEBUG = True

    @pytest.mark.parametrize("address", ["/nowhere/", "/loans/nowhere/at/all", "/registry/loan/none/"])
    def test_an_address_that_leads_nowhere_is_told_in_our_words(self, viewer: Browser, address: str) -> None:
        answer = viewer.get(address)
        assert answer.status_code == 404
        assert "Page or record not found" in answer.content.decode()
        assert "DEBUG" not in answer.content.decode()

    def test_a_forgotten_slash_is_still_added(self, viewer: Browser) -> None:
        assert viewer.get("/status")["Location"] == "/status/"

    def test_the_icon_is_found_where_browsers_look(self, anonymous: Browser) -> None:
        assert anonymous.get("/favicon.ico")["Location"] == "/static/icon.svg"


class TestHealthz:
    def test_it_answers_without_signing_in_and_tells_nothing(self, anonymous: Browser) -> None:
        answer = anonymous.get("/healthz")
        assert (answer.status_code, answer.content) == (200, f"ok {__version__}\n".encode())

    def test_it_needs_no_database(self, client: Browser) -> None:
        assert client.get("/healthz").status_code == 200

    def test_it_needs_none_for_a_browser_that_is_signed_in(
        self, viewer: Browser, django_assert_num_queries: DjangoAssertNumQueries
    ) -> None:
        with django_assert_num_queries(0):
            assert viewer.get("/healthz").status_code == 200
