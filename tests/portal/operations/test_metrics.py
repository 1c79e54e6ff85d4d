"""The metrics for monitoring: who may read them, what they report, and counts across processes."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest
import requests
from django.conf import LazySettings
from django.core.management import call_command
from django.test import Client as Browser

from portal.audit.chain import append
from portal.audit.models import Actor
from portal.jobs.queue import start_job
from portal.lookup.tasks import refresh_portfolio
from portal.operations import tallies
from portal.operations.models import Tally
from portal.settings import BASE_DIR
from servicing.sandbox import Sandbox
from tests import given
from tests.portal.jobs.test_worker import database_url
from tests.portal.operations.test_demo import free_port
from tests.portal.operations.test_serving import serving

TOKEN = "a-token-for-the-metrics"


@pytest.fixture
def token(portal_service: Sandbox, settings: LazySettings) -> Iterator[str]:
    """Turn metrics on."""
    settings.METRICS_TOKEN = TOKEN
    yield TOKEN
    tallies.flush()


def metrics(browser: Browser, token: str = TOKEN) -> dict[str, float]:
    answer = browser.get("/metrics", headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 200, answer.content
    lines = [line for line in answer.content.decode().splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r'[a-z_]+(\{(\w+="[^"]*",?)+\})? [\d.]+', line) for line in lines)
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def test_metrics_are_off_without_a_token(anonymous: Browser) -> None:
    assert anonymous.get("/metrics").status_code == 404


def test_metrics_require_the_token(anonymous: Browser, viewer: Browser, token: str) -> None:
    for browser in (anonymous, viewer):
        assert browser.get("/metrics").status_code == 401
        assert browser.get("/metrics", headers={"Authorization": "Bearer another"}).status_code == 401


def test_requests_and_calls_are_counted_by_outcome(
    viewer: Browser, portal_service: Sandbox, token: str
) -> None:
    viewer.get("/messages/")
    viewer.get("/messages/")
    portal_service.fail_next("messages.list", status=401)
    viewer.get("/messages/")
    viewer.get("/nowhere/")
    values = metrics(viewer)
    request, call = "desk_request_duration_seconds", "desk_remote_call_duration_seconds"
    assert values[f'{request}_count{{view="messaging:index",status="200"}}'] == 3
    assert values[f'{request}_bucket{{view="messaging:index",status="200",le="+Inf"}}'] == 3
    assert values[f'{request}_count{{view="none",status="404"}}'] == 1
    assert values[f'{call}_count{{operation="messages.list",outcome="answered"}}'] >= 1
    assert values[f'{call}_count{{operation="messages.list",outcome="forbidden"}}'] == 1
    assert f'{call}_sum{{operation="messages.list",outcome="answered"}}' in values


def test_waiting_jobs_and_ages_are_reported(viewer: Browser, token: str) -> None:
    start_job(refresh_portfolio)
    call_command("sync_messages")
    call_command("verify_audit")
    values = metrics(viewer)
    assert values['desk_jobs{job="lookup.refresh_portfolio",state="waiting"}'] == 1
    assert (
        values["desk_workers"],
        values["desk_audit_unbroken"],
        values['desk_writes_open{state="unknown"}'],
    ) == (
        0,
        1,
        0,
    )
    ages = ("desk_job_wait", "desk_sync_age", "desk_audit_check_age", "desk_remote_answer_age")
    assert all(0 <= values[f"{name}_seconds"] < 300 for name in ages)
    entries = values["desk_audit_entries_total"]
    append(Actor.system("test"), "lookup.add")
    assert metrics(viewer)["desk_audit_entries_total"] == entries + 1


@pytest.mark.django_db(transaction=True)
def test_counts_of_processes_are_added_up(anonymous: Browser, token: str) -> None:
    """A process that ends saves its counts, for known views and for new ones."""
    tallies.count(tallies.REQUEST, "home:index", "200", 40)
    tallies.flush()
    script = "from portal.operations import tallies as t\n" + "\n".join(
        f"t.count(t.REQUEST, {view!r}, '200', {ms})"
        for view, ms in [("home:index", 700), ("loans:index", 99_000)]
    )
    command = [sys.executable, "-c", f"import django; django.setup()\n{script}"]
    environment = os.environ | {"DATABASE_URL": database_url(), "METRICS_TOKEN": TOKEN}
    subprocess.run(command, env=environment, cwd=BASE_DIR, check=True, timeout=60)
    values = metrics(anonymous)
    name = "desk_request_duration_seconds"
    home = '{view="home:index",status="200"'
    assert values[f"{name}_count{home}}}"] == 2
    assert values[f'{name}_bucket{home},le="0.05"}}'] == 1
    assert values[f'{name}_bucket{home},le="1"}}'] == 2
    assert values[f"{name}_sum{home}}}"] == 0.74
    assert values[f'{name}_bucket{{view="loans:index",status="200",le="10"}}'] == 0


def test_requests_are_not_counted_without_a_token(viewer: Browser, portal_service: Sandbox) -> None:
    given.borrower(portal_service)
    viewer.get("/borrowers/")
    tallies.flush()
    assert Tally.objects.count() == 0


def test_an_unreachable_database_is_reported_at_once(portal_service: Sandbox) -> None:
    port, away = free_port(), "postgres://desk@127.0.0.1:9/desk"
    with serving(portal_service, port, DATABASE_URL=away, METRICS_TOKEN=TOKEN, WEB_CONCURRENCY="1"):
        base = f"http://127.0.0.1:{port}"
        requests.get(f"{base}/healthz", timeout=60)
        ready = requests.get(f"{base}/readyz", timeout=5)
        assert (ready.status_code, ready.text) == (503, "database: not responding\n")
        answer = requests.get(f"{base}/metrics", timeout=5, headers={"Authorization": f"Bearer {TOKEN}"})
        assert (answer.status_code, answer.headers["Content-Type"].partition(";")[0]) == (200, "text/plain")
        assert "desk_database_up 0" in answer.text.splitlines()
        assert "desk_counts_waiting" in answer.text
        assert "desk_workers" not in answer.text


def test_a_healthy_database_and_cache_are_reported(viewer: Browser, token: str) -> None:
    values = metrics(viewer)
    assert (values["desk_database_up"], values["desk_counts_waiting"]) == (1, 0)
