"""The doctor command: it reports each problem of a deployment in plain words."""

import os
import subprocess
import sys
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
import time_machine
from allauth.mfa.models import Authenticator
from django.conf import LazySettings
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from portal.accounts.encryption import encrypt
from portal.accounts.models import User
from portal.audit import guard
from portal.audit.chain import append
from portal.audit.models import Actor, Outage
from portal.gateway import client as gateway
from portal.jobs.models import Worker
from portal.operations import doctor
from portal.records.models import Account
from portal.settings import BASE_DIR
from servicing.sandbox import Sandbox
from tests import databases, given
from tests.portal.conftest import use_provider
from tests.portal.documents.test_pdf import end_fork_server
from tests.portal.operations.test_demo import free_port
from tests.portal.test_settings import NEEDED

pytestmark = [pytest.mark.postgres, pytest.mark.django_db]


@pytest.fixture
def healthy(portal_service: Sandbox, settings: LazySettings, tmp_path: Path) -> Sandbox:
    """A deployment without problems, except for the settings of local use."""
    settings.DEBUG = True
    settings.ENV_FILE = tmp_path / "env"
    if connection.vendor == "sqlite":
        Path(connection.settings_dict["NAME"]).chmod(0o600)
    Worker.objects.create(id="one", beat_at=timezone.now())
    portal_service.world.message("payment.succeeded", {})
    call_command("verify_audit", stdout=StringIO())
    return portal_service


def run_doctor() -> str:
    """Return the output of the doctor, which always fails while DEBUG is on."""
    out = StringIO()
    with pytest.raises(CommandError, match="to fix"):
        call_command("doctor", stdout=out)
    return out.getvalue()


def test_a_healthy_deployment_only_has_debug_on(healthy: Sandbox) -> None:
    words = run_doctor()
    # On PostgreSQL, the role of the tests owns its tables.
    problems = [line for line in words.splitlines() if not line.startswith(("ok ", "warn   This role owns"))]
    assert problems == ["WRONG  DEBUG is on: demo staff can sign in and nothing is secured. Turn DEBUG off."]
    for part in (
        "database responds",
        "agrees on the time",
        "Workers running: 1",
        "PDFs can be created",
        "intact at its last full check",
    ):
        assert part in words


@pytest.mark.slow
def test_pdfs_that_cannot_be_created_are_reported(
    healthy: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "weasyprint.py").write_text("raise OSError('cannot load library libpango-1.0-0')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    end_fork_server()
    words = run_doctor()
    end_fork_server()
    assert "WRONG  PDFs can’t be created. The document engine’s system libraries are missing." in words
    assert "docker/system-packages.txt" in words


def test_rejected_credentials_are_reported(healthy: Sandbox, settings: LazySettings) -> None:
    settings.SERVICING_SECRET = "0123456789abcdef0123456789abcdef"
    gateway.client.cache_clear()
    refused = f"WRONG  The lending service at {healthy.url} can’t be used: The signature is not valid. Check "
    who = "SERVICING_CLIENT_ID, SERVICING_SECRET, SERVICING_AUTH and this machine's clock."
    assert f"{refused}{who}\n" in run_doctor()
    settings.SERVICING_AUTH, settings.SERVICING_TOKEN = "bearer", "token"
    gateway.client.cache_clear()
    assert (
        "can’t be used: The client is not known. Check SERVICING_TOKEN and SERVICING_AUTH.\n" in run_doctor()
    )


@pytest.mark.slow
def test_the_identity_provider_is_checked(
    healthy: Sandbox, settings: LazySettings, provider_url: str
) -> None:
    use_provider(settings, provider_url)
    register = "Register https://127.0.0.1/sign-in/with/sso/back/ there as the redirect URI."
    assert f"The identity provider at {provider_url} responds. {register}" in run_doctor()
    settings.OIDC_SCOPES = ["openid", "groups"]
    assert "doesn’t list the scope groups. Check OIDC_SCOPES." in run_doctor()
    use_provider(settings, provider_url.replace("127.0.0.1", "localhost"))
    settings.OIDC_URL = "https://id.example"
    words = run_doctor()
    assert "names http://localhost" in words
    assert "Set OIDC_ORIGINS to http://localhost" in words
    use_provider(settings, f"http://127.0.0.1:{free_port()}")
    assert "isn’t responding as an OpenID provider. Check OIDC_URL." in run_doctor()
    use_provider(settings, healthy.url)
    assert "isn’t responding as an OpenID provider. Check OIDC_URL." in run_doctor()


@pytest.mark.parametrize("status", [301, 404, 500])
def test_a_wrong_service_url_is_reported(healthy: Sandbox, status: int) -> None:
    healthy.fail_next("messages.list", status=status, times=9)
    (problem,) = (line for line in run_doctor().splitlines() if line.startswith("WRONG  The lending service"))
    assert problem.endswith(". Check SERVICING_URL.")


def test_settings_that_do_not_match_the_service_are_reported(
    healthy: Sandbox, settings: LazySettings, tmp_path: Path
) -> None:
    keys = {"client_id": healthy.client_id, "secret": healthy.secret}
    with Sandbox(tmp_path / "other.db", **keys, filters="body", offset="rows", page_cap=250) as other:
        for _ in range(4):
            other.world.message("payment.succeeded", {})
        settings.SERVICING_URL, settings.SERVICING_OFFSET_COUNTS = other.url, "pages0"
        words = run_doctor()
        assert {call.method for call in other.calls} == {"GET"}
    assert "WRONG  SERVICING_MESSAGE_FILTERS doesn’t match this service. Set it to body.\n" in words
    assert "WRONG  SERVICING_OFFSET_COUNTS doesn’t match this service. Set it to rows.\n" in words


def test_a_statement_that_cannot_be_read_is_reported(healthy: Sandbox) -> None:
    line = given.line(healthy, given.borrower(healthy))
    Account.objects.filter(uuid=line.uuid).update(checked_at=timezone.now())
    healthy.fail_next("credit_lines.statement", changes={"payoff_balance": [1]}, times=None)
    assert (
        "WRONG  The statement has fields of another type: payoff_balance is not a number.\n" in run_doctor()
    )


def test_a_missing_worker_and_unsafe_settings_are_reported(
    healthy: Sandbox, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    Worker.objects.all().delete()
    settings.ENV_FILE.write_text("SECRET_KEY=…")
    settings.ENV_FILE.chmod(0o644)
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
    monkeypatch.setenv("WEB_CONCURRENCY", "2")
    words = run_doctor()
    assert "WRONG  No worker is running" in words
    assert f"chmod 600 {settings.ENV_FILE}" in words
    assert "warn   Each process throttles sign-ins on its own." in words


@pytest.mark.slow
def test_mistaken_settings_are_reported(
    healthy: Sandbox, settings: LazySettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("METRICS_TOKEN", "OIDC_CLIENT_SECRET"):
        monkeypatch.setenv(f"{name}_FILE", str(tmp_path / name))
        (tmp_path / name).touch(mode=0o600)
    (tmp_path / "OIDC_CLIENT_SECRET").write_text("one")
    monkeypatch.setenv("OIDC_CLIENT_SECRET", "another")
    settings.ENV_FILE.write_text(
        "# X=1\nDRAFT_DAYS=3\nORGANISATION=Acme\nREQUESTS_CA_BUNDLE=ca.pem\nSERVICING_SECRT_FILE=a=b\n"
        "export COLOUR=blue\n"
    )
    settings.ENV_FILE.chmod(0o600)
    words = run_doctor()
    assert f"WRONG  METRICS_TOKEN_FILE points to an empty file: {tmp_path / 'METRICS_TOKEN'}\n" in words
    assert "ok     Metrics are off: METRICS_TOKEN is not set." in words
    assert "WRONG  OIDC_CLIENT_SECRET and OIDC_CLIENT_SECRET_FILE are both set, and the file wins." in words
    nothing = "warn   Nothing reads {} from " + f"{settings.ENV_FILE}."
    assert f"{nothing.format('SERVICING_SECRT_FILE')} Did you mean SERVICING_SECRET?\n" in words
    assert f"{nothing.format('COLOUR')}\n" in words
    assert words.count("Nothing reads") == 2


def test_every_example_setting_is_read(healthy: Sandbox, settings: LazySettings) -> None:
    settings.ENV_FILE = BASE_DIR / ".env.example"
    assert "Nothing reads" not in run_doctor()


def test_available_metrics_are_reported(settings: LazySettings) -> None:
    settings.METRICS_TOKEN = "m" * 16
    (found,) = doctor.metrics()
    assert (found.grade, found.words) == ("ok", "Metrics are available with METRICS_TOKEN.")


def test_a_missing_migration_skips_the_other_checks(healthy: Sandbox) -> None:
    MigrationRecorder.Migration.objects.filter(app="jobs").delete()
    words = run_doctor()
    assert "is missing 1 migration. Run manage.py upgrade." in words
    assert (
        "warn   Keys, saved responses, service, worker, cache and audit trail were not checked. Fix the database first."
        in words
    )
    assert "failed" not in words


@pytest.mark.slow
@pytest.mark.parametrize(
    ("address", "said", "why"),
    [
        (
            "postgres://desk:pass-word-1@127.0.0.1:9/desk",
            "The database isn’t responding. Check DATABASE_URL. ",
            "refused",
        ),
        (
            "sqlite:////nowhere/portal.sqlite3",
            "DATABASE_URL points to the folder ",
            "where this user can’t write",
        ),
        ("", "DATA_DIR points to the folder ", "where this user can’t write"),
    ],
)
def test_an_unreachable_database_is_reported_with_the_reason(
    address: str, said: str, why: str, tmp_path: Path
) -> None:
    given = NEEDED | {"DEBUG": "off", "DATA_DIR": str(tmp_path / "nowhere"), "DATABASE_URL": address}
    environment = os.environ | given
    result = subprocess.run(
        [sys.executable, "manage.py", "doctor"],
        env=environment,
        cwd=BASE_DIR,
        capture_output=True,
        text=True,
        timeout=120,
    )
    (problem,) = (line for line in result.stdout.splitlines() if line.startswith(f"WRONG  {said}"))
    assert why in problem
    assert "pass-word-1" not in result.stdout + result.stderr
    assert result.returncode == 1


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has no replica")
def test_a_read_only_database_is_reported(healthy: Sandbox) -> None:
    databases.run("SET transaction_read_only = on")
    lines = [line for line in run_doctor().splitlines() if "The database" in line]
    assert [line.partition(". ")[0] for line in lines] == ["WRONG  The database can’t be written to"]


@pytest.mark.slow
def test_a_changed_secret_key_is_reported(healthy: Sandbox, settings: LazySettings) -> None:
    person = User.objects.create_user("maya")
    Authenticator.objects.create(
        user=person, type=Authenticator.Type.TOTP, data={"secret": encrypt("shared")}
    )
    before, settings.SECRET_KEY = settings.SECRET_KEY, "another-" + "0" * 60
    assert "WRONG  1 of the last 1 second factors can’t be decrypted: SECRET_KEY has changed." in run_doctor()
    settings.SECRET_KEY_FALLBACKS = [before]
    assert "second factors" not in run_doctor()


def test_the_service_is_checked_during_a_pause(healthy: Sandbox) -> None:
    now = timezone.now()
    Outage.objects.create(pk=1, since=now, tries=9, ask_again_at=now + timedelta(hours=1))
    assert "ok     The lending service responds" in run_doctor()


def test_unusable_settings_are_reported(healthy: Sandbox, settings: LazySettings) -> None:
    settings.DEBUG, settings.ALLOWED_HOSTS = False, ["*"]
    words = run_doctor()
    assert "warn   ALLOWED_HOSTS accepts any host. List the host names that people use.\n" in words


@pytest.mark.slow
def test_missing_triggers_and_overdue_checks_are_reported(healthy: Sandbox) -> None:
    guard.remove_triggers(connection)
    with time_machine.travel(timezone.now() + timedelta(days=3)):
        words = run_doctor()
    guard.install_triggers(connection)
    assert words.count("WRONG  The audit trail isn’t protected: the trigger audit_entry_") == 3
    assert "hasn’t been checked for two days" in words


def test_the_number_of_checked_entries_is_reported(healthy: Sandbox) -> None:
    append(Actor.system("verify"), "audit.verify", detail={"entries": 4_321})
    append(Actor.system("verify"), "lookup.add")
    assert "intact at its last full check (4,321 entries; " in run_doctor()


@pytest.mark.slow
def test_a_broken_trail_is_reported_without_the_cache(healthy: Sandbox, settings: LazySettings) -> None:
    append(
        Actor.system("verify"), "audit.verify", result="broken", detail={"problem": "Entry 1 was altered."}
    )
    redis = "redis://127.0.0.1:9/0"
    settings.CACHES = {
        "default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": redis}
    }
    words = run_doctor()
    assert "WRONG  The cache isn’t responding. Check CACHE_URL. ConnectionError: Error 111" in words
    assert "WRONG  The audit trail is broken. Entry 1 was altered." in words
