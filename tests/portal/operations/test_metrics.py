"""The metrics for monitoring: who may read them, and what they report."""

from datetime import timedelta
from pathlib import Path

import pytest
import requests
from django.conf import LazySettings
from django.core.management import CommandError, call_command
from django.test import Client as Browser
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from portal.jobs.models import Job, Worker
from portal.jobs.queue import start_job
from portal.lookup.tasks import refresh_portfolio
from servicing.sandbox import Sandbox
from tests.portal.operations.test_demo import free_port
from tests.portal.operations.test_serving import serving

pytestmark = pytest.mark.postgres

TOKEN = "a-token-for-the-metrics"


@pytest.fixture
def token(portal_service: Sandbox, settings: LazySettings) -> str:
    """Turn metrics on."""
    settings.METRICS_TOKEN = TOKEN
    return TOKEN


def metrics(browser: Browser, token: str = TOKEN) -> dict[tuple[str, ...], float]:
    """Read all gauges as Prometheus would, by name and label values."""
    answer = browser.get("/metrics", headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 200, answer.content
    families = list(text_string_to_metric_families(answer.content.decode()))
    assert {family.type for family in families} == {"gauge"}
    samples = [sample for family in families for sample in family.samples]
    return {(sample.name, *sample.labels.values()): sample.value for sample in samples}


def test_metrics_are_off_without_a_token(anonymous: Browser) -> None:
    assert anonymous.get("/metrics").status_code == 404


def test_metrics_require_the_token(anonymous: Browser, viewer: Browser, token: str) -> None:
    for browser in (anonymous, viewer):
        assert browser.get("/metrics").status_code == 401
        assert browser.get("/metrics", headers={"Authorization": "Bearer another"}).status_code == 401


def test_jobs_writes_and_ages_are_reported(viewer: Browser, token: str) -> None:
    start_job(refresh_portfolio)
    Job.objects.create(name="home.notices", label="Send mail", state=Job.State.FAILED)
    Worker.objects.create(id="one", beat_at=timezone.now())
    Worker.objects.create(id="silent", beat_at=timezone.now() - timedelta(days=1))
    call_command("sync_messages")
    call_command("verify_audit")
    values = metrics(viewer)
    expected = {
        ("desk_database_up",): 1,
        ("desk_workers",): 1,
        ("desk_jobs", "lookup.refresh_portfolio", "waiting"): 1,
        ("desk_jobs_failed", "home.notices"): 1,
        ("desk_remote_left_alone",): 0,
        ("desk_writes_open", "sending"): 0,
        ("desk_writes_open", "unknown"): 0,
        ("desk_audit_unbroken",): 1,
    }
    assert {key: values.get(key) for key in expected} == expected
    for name in ("desk_job_wait", "desk_sync_age", "desk_audit_check_age", "desk_remote_answer_age"):
        assert 0 <= values[f"{name}_seconds",] < 300


def test_nothing_is_reported_of_what_never_happened(viewer: Browser, token: str) -> None:
    names = {name for name, *_ in metrics(viewer)}
    assert names == {"desk_database_up", "desk_workers", "desk_remote_left_alone", "desk_writes_open"}


@pytest.mark.django_db(transaction=True)
def test_only_a_finished_backup_has_an_age(viewer: Browser, token: str, tmp_path: Path) -> None:
    with pytest.raises(CommandError):
        call_command("backup", "/proc/copy")
    assert ("desk_backup_age_seconds",) not in metrics(viewer)
    call_command("backup", tmp_path / "copy")
    assert 0 <= metrics(viewer)["desk_backup_age_seconds",] < 300


@pytest.mark.slow
def test_an_unreachable_database_is_reported_at_once(portal_service: Sandbox) -> None:
    port, away = free_port(), "postgres://desk@127.0.0.1:9/desk"
    with serving(portal_service, port, DATABASE_URL=away, METRICS_TOKEN=TOKEN, WEB_CONCURRENCY="1"):
        base = f"http://127.0.0.1:{port}"
        requests.get(f"{base}/healthz", timeout=60)
        ready = requests.get(f"{base}/readyz", timeout=5)
        assert (ready.status_code, ready.text) == (503, "database: not responding\n")
        answer = requests.get(f"{base}/metrics", timeout=5, headers={"Authorization": f"Bearer {TOKEN}"})
        assert (answer.status_code, answer.headers["Content-Type"].partition(";")[0]) == (200, "text/plain")
        assert "desk_database_up 0.0" in answer.text.splitlines()
        assert "desk_workers" not in answer.text
