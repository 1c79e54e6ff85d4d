"""The status page, the health checks and the page for unknown addresses."""

import re
from datetime import timedelta
from html import unescape
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
from servicing.sandbox import Sandbox
from tests.conftest import SECRET, htmx
from tests.portal.pages import visible_text


def record_call(
    operation: str = "loans.get", *, outcome: str = "confirmed", ms: int = 5, hours: float = 0
) -> None:
    created = RemoteCall.objects.create(
        operation=operation, outcome=outcome, duration_ms=ms, actor_name="Maya Chen"
    )
    RemoteCall.objects.filter(pk=created.pk).update(at=timezone.now() - timedelta(hours=hours))


def group(browser: Browser, name: str) -> Any:
    return next(one for one in browser.get("/status/").context["groups"] if one.name == name)


def test_the_page_says_when_there_are_no_calls(viewer: Browser) -> None:
    page = " ".join(viewer.get("/status/").content.decode().split())
    assert "No failed calls" in page
    assert page.count("No calls") == len(GROUPS)
    assert "Last failure" not in page


def test_a_real_call_is_listed_with_its_outcome(viewer: Browser, portal_service: Sandbox) -> None:
    viewer.get("/messages/")
    page = " ".join(viewer.get("/status/").content.decode().split())
    assert "messages.list" in page
    assert page.count(">Responding<") == 1


@pytest.mark.slow
@pytest.mark.parametrize("outcome", ["unavailable", "unknown", "not_sent", "protocol", "forbidden"])
def test_a_call_without_a_usable_answer_is_a_failure(viewer: Browser, outcome: str) -> None:
    record_call(outcome=outcome)
    assert (group(viewer, "Loans").state, group(viewer, "Loans").failures) == ("bad", 1)
    assert ">Failing<" in " ".join(viewer.get("/status/").content.decode().split())


def test_a_rejection_is_not_a_failure(viewer: Browser) -> None:
    record_call("applications.submit", outcome="rejected")
    assert group(viewer, "Applications").state == "ok"


def test_wrong_credentials_show_as_failing(viewer: Browser, portal_service: Sandbox) -> None:
    portal_service.fail_next("messages.list", status=401)
    viewer.get("/messages/")
    assert group(viewer, "Messages").state == "bad"


def test_the_latest_call_decides_the_state(viewer: Browser) -> None:
    record_call(outcome="unavailable", hours=2)
    record_call(hours=1)
    assert group(viewer, "Loans").state == "ok"
    record_call(outcome="unavailable")
    assert group(viewer, "Loans").state == "bad"


def test_counts_have_thousands_separators(viewer: Browser) -> None:
    record_call(ms=1500)
    shown = viewer.get("/status/").content.decode()
    assert ">1,500</td>" in shown


def test_each_group_shows_calls_latency_and_failures(viewer: Browser) -> None:
    for ms in (3, 900, 5):
        record_call(ms=ms)
    record_call(outcome="unavailable", ms=40)
    found = group(viewer, "Loans")
    assert (found.calls, found.median, found.failures) == (4, 40, 1)
    assert found.p95 == 900


def test_calls_older_than_a_day_do_not_count(viewer: Browser) -> None:
    record_call(outcome="unavailable", hours=25)
    assert group(viewer, "Loans").state == "neutral"


def test_a_call_outside_the_groups_is_not_counted(portal_service: Sandbox) -> None:
    record_call("documents.fetch", outcome="unavailable")
    assert not any(one.calls for one in measure_health())


def test_setting_values_are_never_shown(
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
    # Only administrators see the names of settings.
    assert not re.search("SERVICING_|MAIL_MINUTES", viewer.get("/status/").content.decode())


class TestCalls:
    """The list of calls and its filters."""

    @pytest.fixture(autouse=True)
    def calls(self, viewer: Browser) -> None:
        record_call(ms=5)
        record_call("messages.list", outcome="unavailable", ms=900)
        record_call("applications.submit", outcome="rejected", ms=30)
        RemoteCall.objects.filter(operation="loans.get").update(method="GET", status=200, request_id="r-aa-1")
        RemoteCall.objects.filter(operation="messages.list").update(method="GET", request_id="r-bb-1")
        RemoteCall.objects.filter(operation="applications.submit").update(
            method="POST", status=422, request_id="r-aa-2", actor_name="Ana Ortiz", error="too much"
        )

    @pytest.mark.slow
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
    def test_each_filter_narrows_the_list(self, viewer: Browser, query: str, found: str) -> None:
        rows = viewer.get(f"/status/?{query}").context["calls"]["rows"]
        assert "".join(row.operation[0] for row in rows) == found

    @pytest.mark.parametrize(("query", "is_open"), [("", False), ("by=ortiz", False), ("slower=30", True)])
    def test_rare_filters_are_collapsed_until_one_is_set(
        self, viewer: Browser, query: str, *, is_open: bool
    ) -> None:
        page = viewer.get(f"/status/?{query}").content.decode()
        assert ('<details class="sd-more" open>' in page) is is_open

    def test_failures_are_grouped_and_link_to_their_calls(self, viewer: Browser) -> None:
        record_call("messages.list", outcome="unavailable")
        record_call("loans.get", outcome="protocol")
        page = viewer.get("/status/")
        found = [(one["operation"], one["count"], one["words"]) for one in page.context["failures"]]
        assert found == [
            ("messages.list", 2, ""),
            ("loans.get", 1, ""),
            ("applications.submit", 1, "too much"),
        ]
        assert ">List messages</a>" in page.content.decode()
        link, _, _ = re.findall(r'href="(\?call=[^"]+#calls)"', page.content.decode())
        rows = viewer.get(f"/status/{unescape(link)}").context["calls"]["rows"]
        assert {row.operation for row in rows} == {"messages.list"}

    def test_paging_shows_each_call_once(self, viewer: Browser) -> None:
        for _ in range(PAGE_SIZE):
            record_call()
        first = viewer.get("/status/?outcome=").context["calls"]
        rest = viewer.get(
            f"/status/?outcome=&before={first['older']}", headers=htmx("call-rows")
        ).content.decode()
        assert (len(first["rows"]), rest.count("<tr data-row>"), ">Older" in rest) == (PAGE_SIZE, 3, False)

    def test_a_filter_without_matches_shows_a_message(self, viewer: Browser) -> None:
        region = viewer.get("/status/?by=nobody", headers=htmx("call-rows")).content.decode()
        assert "No calls match" in region
        assert "<html" not in region

    def test_paths_are_shown_as_patterns(self) -> None:
        path = (
            "/v1/users/3f2b8c1e-9d47-4a60-b1c5-7e8f90a2d364/loc/9f2b8c1e-9d47-4a60-b1c5-7e8f90a2d364/payments"
        )
        assert path_pattern(path) == "/v1/users/{user}/loc/{loc}/payments"
        assert path_pattern("/v1/webhooks/endpoints/messages") == "/v1/webhooks/endpoints/messages"


class TestBackgroundWork:
    def test_a_worker_that_never_ran_is_reported(self, viewer: Browser) -> None:
        page = " ".join(viewer.get("/status/").content.decode().split())
        assert "No worker is running, and none has run yet. No jobs are waiting." in page

    def test_a_stopped_worker_and_waiting_jobs_are_reported(self, viewer: Browser) -> None:
        Worker.objects.create(id="one", beat_at=timezone.now() - timedelta(minutes=5))
        start_job(refresh_portfolio)
        page = " ".join(viewer.get("/status/").content.decode().split())
        assert "5 min ago" in page
        assert "1 job waits, the oldest since" in page

    def test_a_worker_with_a_heartbeat_is_running(self, viewer: Browser) -> None:
        Worker.objects.create(id="one", beat_at=timezone.now())
        page = " ".join(viewer.get("/status/").content.decode().split())
        assert "1 worker, last seen" in page
        assert "Not running" not in page

    def test_scheduled_jobs_show_their_last_and_next_run(self, viewer: Browser) -> None:
        queue.start_scheduled_jobs()
        call_command("work", batch=True)
        page = " ".join(viewer.get("/status/").content.decode().split())
        assert re.search(r"Done .*\. Next .*in 24 h", page)
        assert "0 of 0" not in page

    def test_only_supervisors_see_the_refresh_button(self, viewer: Browser, supervisor: Browser) -> None:
        assert "/registry/refresh/" not in " ".join(viewer.get("/status/").content.decode().split())
        assert "Refresh all accounts" in " ".join(supervisor.get("/status/").content.decode().split())


class TestTrail:
    def test_the_last_check_is_shown(self, viewer: Browser) -> None:
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

    def test_the_workers_check_is_shown(self, viewer: Browser) -> None:
        append(Actor.system("test"), "lookup.add")
        queue.start_scheduled_jobs()
        call_command("work", batch=True)
        page = " ".join(viewer.get("/status/").content.decode().split())
        head = page.partition('id="chain-title">')[2].partition("</div>")[0]
        assert visible_text(head).split() == ["Audit", "trail", "OK"]
        assert "entries verified" in page


class TestReadyz:
    def test_readyz_reports_the_worker_without_sign_in(self, anonymous: Browser) -> None:
        answer = anonymous.get("/readyz")
        assert (answer.status_code, answer.content) == (
            200,
            b"database: ok\nmigrations: ok\nworker: not running\n",
        )
        Worker.objects.create(id="one", beat_at=timezone.now())
        assert anonymous.get("/readyz").content.endswith(b"worker: ok\n")

    def test_an_unapplied_migration_is_not_ready(self, anonymous: Browser) -> None:
        MigrationRecorder.Migration.objects.filter(app="jobs").delete()
        answer = anonymous.get("/readyz")
        assert (answer.status_code, b"not applied" in answer.content) == (503, True)


class TestMissing:
    """The portal's own error page appears even while DEBUG is on."""

    @pytest.fixture(autouse=True)
    def debug(self, settings: LazySettings) -> None:
        settings.DEBUG = True

    @pytest.mark.parametrize("address", ["/nowhere/", "/loans/nowhere/at/all", "/registry/loan/none/"])
    def test_an_unknown_address_shows_the_portals_page(self, viewer: Browser, address: str) -> None:
        answer = viewer.get(address)
        assert answer.status_code == 404
        assert "Page or record not found" in answer.content.decode()
        assert "DEBUG" not in answer.content.decode()

    def test_a_missing_slash_is_added(self, viewer: Browser) -> None:
        assert viewer.get("/status")["Location"] == "/status/"

    def test_favicon_ico_redirects_to_the_icon(self, anonymous: Browser) -> None:
        assert anonymous.get("/favicon.ico")["Location"] == "/static/icon.svg"


class TestHealthz:
    def test_healthz_requires_no_sign_in(self, anonymous: Browser) -> None:
        answer = anonymous.get("/healthz")
        assert (answer.status_code, answer.content) == (200, b"ok\n")

    def test_healthz_needs_no_database(self, client: Browser) -> None:
        assert client.get("/healthz").status_code == 200

    def test_healthz_runs_no_query_for_a_signed_in_browser(
        self, viewer: Browser, django_assert_num_queries: DjangoAssertNumQueries
    ) -> None:
        with django_assert_num_queries(0):
            assert viewer.get("/healthz").status_code == 200
