"""What is wrong with a deployment is said in plain words; each thing that is looked at can be found wrong."""

from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
import time_machine
from django.conf import LazySettings
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from portal import gateway
from portal.audit import checkpoints, guard
from portal.audit.chain import append
from portal.audit.models import Actor
from portal.jobs.models import Worker
from servicing.sandbox import Sandbox

pytestmark = pytest.mark.django_db


@pytest.fixture
def healthy(desk: Sandbox, settings: LazySettings, tmp_path: Path) -> Sandbox:
    """A deployment in which nothing is wrong, but that it has the settings of local use."""
    settings.DEBUG = True
    settings.AUDIT_CHECKPOINT_KEY = checkpoints.new_key()[0]
    settings.ENV_FILE = tmp_path / "env"
    if connection.vendor == "sqlite":
        Path(connection.settings_dict["NAME"]).chmod(0o600)
    Worker.objects.create(id="one", beat_at=timezone.now())
    call_command("verify_audit", stdout=StringIO())
    return desk


def said() -> str:
    """What it says; under DEBUG it always ends with a refusal."""
    out = StringIO()
    with pytest.raises(CommandError, match="must be mended"):
        call_command("doctor", stdout=out)
    return out.getvalue()


def test_a_healthy_one_has_nothing_to_mend_but_local_use(healthy: Sandbox) -> None:
    words = said()
    # The role of the tests owns what it has made, on PostgreSQL.
    told = [line for line in words.splitlines() if not line.startswith(("ok ", "look   This role owns"))]
    assert told == ["WRONG  DEBUG is on: demo staff can sign in and nothing is secured. Turn it off."]
    for part in (
        "database answers",
        "same time",
        "Workers in the background: 1",
        "Documents can be drawn",
        "held",
    ):
        assert part in words


def test_a_service_that_refuses_these_credentials_is_said(healthy: Sandbox, settings: LazySettings) -> None:
    settings.SERVICING_SECRET = "0123456789abcdef0123456789abcdef"
    gateway.client.cache_clear()
    assert f"WRONG  The lending service at {healthy.url} cannot be used" in said()


def test_what_is_missing_is_said(
    healthy: Sandbox, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    Worker.objects.all().delete()
    MigrationRecorder.Migration.objects.filter(app="jobs").delete()
    settings.ENV_FILE.write_text("SECRET_KEY=…")
    settings.ENV_FILE.chmod(0o644)
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
    monkeypatch.setenv("WEB_CONCURRENCY", "2")
    words = said()
    assert "WRONG  No worker is running" in words
    assert "lacks 1 migrations. Run manage.py upgrade." in words
    assert f"chmod 600 {settings.ENV_FILE}" in words
    assert "look   Each process throttles sign-ins by itself." in words


def test_a_trail_that_is_unguarded_and_unchecked_is_said(healthy: Sandbox, settings: LazySettings) -> None:
    settings.AUDIT_CHECKPOINT_KEY = ""
    guard.remove(connection)
    with time_machine.travel(timezone.now() + timedelta(days=3)):
        words = said()
    guard.install(connection)
    assert "The trigger audit_entry_no_update is missing" in words or connection.vendor != "sqlite"
    assert "not checked for two days" in words
    assert "Nobody signs" in words


def test_a_broken_trail_is_said_though_the_cache_is_away(healthy: Sandbox, settings: LazySettings) -> None:
    append(
        Actor.system("verify"), "audit.verify", result="broken", detail={"problem": "Entry 1 was altered."}
    )
    redis = "django.core.cache.backends.redis.RedisCache"
    settings.CACHES = {"default": {"BACKEND": redis, "LOCATION": "redis://127.0.0.1:9/0"}}
    words = said()
    assert "WRONG  The check of shared cache failed: ConnectionError." in words
    assert "WRONG  The audit trail is broken. Entry 1 was altered." in words
