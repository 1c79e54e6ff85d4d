"""Fixtures of every test: the lending service's sandbox over real HTTP, and a signed-in browser for each role."""

import itertools
import os
import tempfile
import zoneinfo
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import django
import hypothesis
import pytest

# The portal as "make run" starts it, whatever the environment and the .env of this machine say. Django reads it now.
for name in [name for name in os.environ if name.startswith(("SERVICING_", "OTEL_"))]:
    if name != "SERVICING_LIVE_URL":
        del os.environ[name]
os.environ |= {
    "DJANGO_SETTINGS_MODULE": "portal.settings",
    "DEBUG": "on",
    "ENV_FILE": os.devnull,
    "DATA_DIR": tempfile.gettempdir(),
}
django.setup()

from django.conf import LazySettings, settings
from django.core.cache import cache
from django.core.management import call_command
from django.db import connection, connections
from django.test import Client as Browser
from django.test import TransactionTestCase
from django.utils import timezone

from portal import gateway, readings
from portal.accounts.models import User
from portal.accounts.roles import Role
from portal.audit import spool
from servicing import Client
from servicing.sandbox import Sandbox
from tests import databases

# Each process of a run, and each portal that it starts, has a folder of its own.
settings.DATA_DIR = Path(databases.FOLDER.name)
os.environ["DATA_DIR"] = databases.FOLDER.name

# How fast a machine draws examples is no property of the code.
hypothesis.settings.register_profile(
    "desk", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("desk")

settings.PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.MD5PasswordHasher"
]  # The real one is slow on purpose.

CLIENT_ID = "test-desk"
SECRET = "3f2b8c1e-9d47-4a60-b1c5-7e8f90a2d364"


@pytest.fixture(autouse=True)
def own_checkpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: LazySettings) -> None:
    """Each test has a trail of its own, and so checkpoints of its own, in the processes it starts too."""
    settings.AUDIT_CHECKPOINT_DIR = str(tmp_path / "checkpoints")
    monkeypatch.setenv("AUDIT_CHECKPOINT_DIR", settings.AUDIT_CHECKPOINT_DIR)


@pytest.fixture(autouse=True)
def day_of_staff() -> Iterator[None]:
    """What a test calls today is what a request calls so: for some hours of each night UTC is a day ahead."""
    with timezone.override(zoneinfo.ZoneInfo(settings.BUSINESS_TIME_ZONE)):
        yield


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    tmp_path_factory: pytest.TempPathFactory, django_db_modify_db_settings_parallel_suffix: None
) -> None:
    """A database for each worker; on SQLite a file, as in production: threads and two clicks at once write to it."""
    database = settings.DATABASES["default"]
    if database["ENGINE"].endswith("sqlite3"):
        database.setdefault("TEST", {})["NAME"] = str(tmp_path_factory.mktemp("portal") / "portal.sqlite3")


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None) -> Iterator[None]:
    """A test that commits works on a copy of the database: the audit refuses to be emptied after it."""

    def take_copy(*_: Any) -> None:
        connections.close_all()
        # A name of its own: what a killed process left in a journal must not be read into the next copy.
        name = f"copy{next(numbers)}"
        connection.creation.clone_test_db(name, verbosity=0)
        connection.settings_dict["NAME"] = connection.creation.get_test_db_clone_settings(name)["NAME"]

    def throw_away(*_: Any) -> None:
        connections.close_all()
        connection.creation.destroy_test_db(original, verbosity=0)

    original, numbers = connection.settings_dict["NAME"], itertools.count()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_setup", classmethod(take_copy))
        patch.setattr(TransactionTestCase, "_fixture_teardown", throw_away)
        yield


@pytest.fixture(scope="session")
def sandbox_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """One sandbox for the whole run, on a free loopback port."""
    server = Sandbox(
        tmp_path_factory.mktemp("sandbox") / "sandbox.sqlite3", client_id=CLIENT_ID, secret=SECRET
    )
    server.start()
    yield server
    server.stop()


@pytest.fixture
def sandbox(sandbox_server: Sandbox) -> Sandbox:
    """The sandbox, empty."""
    sandbox_server.reset()
    return sandbox_server


@pytest.fixture
def lending(sandbox: Sandbox) -> Client:
    """The library's client on the sandbox."""
    return Client(sandbox.url, client_id=CLIENT_ID, secret=SECRET)


@pytest.fixture
def desk(db: None, sandbox: Sandbox, settings: LazySettings) -> Iterator[Sandbox]:
    """The portal pointed at the sandbox."""
    settings.SERVICING_URL = sandbox.url
    settings.SERVICING_CLIENT_ID = CLIENT_ID
    settings.SERVICING_SECRET = SECRET
    gateway.client.cache_clear()
    cache.clear()
    yield sandbox
    sandbox.heal()
    readings.finish(
        timeout=10
    )  # What a page left to finish by itself must not write into the next test's database.
    gateway.client.cache_clear()
    if spool.path().is_file() and spool.entries():  # They belong to this test's database.
        spool.path().unlink()


def browser_of(role: Role, **extra: Any) -> Browser:
    """A browser in which a person with this role is signed in."""
    browser = Browser(**extra)
    browser.force_login(existing_user(role.value, role=role, first_name=role.label))
    return browser


def existing_user(username: str, password: str | None = None, **fields: Any) -> User:
    """A person whose account is older than the trail."""
    if not User.objects.filter(username=username).exists():
        user = User(username=username, **fields)
        if password:
            user.set_password(password)
        user.save_base(raw=True)
    return User.objects.get(username=username)


def superuser(role: Role = Role.ADMIN) -> User:
    """Whoever ``createsuperuser`` made, with all of Django's flags, and later moved to ``role``."""
    if not User.objects.filter(username="root").exists():
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("DJANGO_SUPERUSER_PASSWORD", "walnut-harbor-77")
            call_command(
                "createsuperuser", "--no-input", username="root", email="root@desk.example", stdout=StringIO()
            )
        User.objects.filter(username="root").update(is_staff=True, is_superuser=True)
    root = User.objects.get(username="root")
    if root.role != role:
        root.role = role
        root.save()
    return root


def browser_of_superuser(role: Role = Role.ADMIN, **extra: Any) -> Browser:
    """A browser in which that superuser is signed in."""
    browser = Browser(**extra)
    browser.force_login(superuser(role))
    return browser


@pytest.fixture
def viewer(desk: Sandbox) -> Browser:
    return browser_of(Role.VIEWER)


@pytest.fixture
def servicer(desk: Sandbox) -> Browser:
    return browser_of(Role.SERVICER)


@pytest.fixture
def supervisor(desk: Sandbox) -> Browser:
    return browser_of(Role.SUPERVISOR)


@pytest.fixture
def auditor(desk: Sandbox) -> Browser:
    return browser_of(Role.AUDITOR)


@pytest.fixture
def admin(desk: Sandbox) -> Browser:
    return browser_of(Role.ADMIN)


@pytest.fixture
def anonymous(desk: Sandbox) -> Browser:
    return Browser()


def htmx(target: str) -> dict[str, str]:
    """The headers of an HTMX request that aims at a region."""
    return {"HX-Request": "true", "HX-Target": target}
