"""Fixtures for all tests: the sandbox service over real HTTP, and a signed-in browser for each role."""

import gc
import itertools
import os
import tempfile
import threading
import time
import zoneinfo
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import django
import hypothesis
import pytest

# Tests must not depend on the environment or the .env file, which Django reads in django.setup().
for name in [name for name in os.environ if name.startswith("SERVICING_")]:
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
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.core.cache import cache
from django.core.signals import request_finished, request_started
from django.db import connection, connections
from django.test import Client as Browser
from django.test import TransactionTestCase
from django.utils import timezone
from django.utils.crypto import get_random_string

from portal.accounts.models import User
from portal.accounts.roles import Role
from portal.audit.unsaved import answers_file
from portal.gateway import client as gateway
from servicing import Client
from servicing.sandbox import Sandbox
from tests import databases

# Each test process, and each portal that it starts, has its own data folder.
settings.DATA_DIR = Path(databases.FOLDER.name)
os.environ["DATA_DIR"] = databases.FOLDER.name

# A slow machine must not fail a test.
hypothesis.settings.register_profile(
    "desk", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("desk")

# The real hasher is slow on purpose.
settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

CLIENT_ID = "test-desk"
SECRET = "9c41e6d2-5b78-4f03-a2d9-6e15c87b3f40"
NUMBERS = itertools.count()
ANSWERING: set[int] = set()
"""The threads that answer a request."""
request_started.connect(lambda **_: ANSWERING.add(threading.get_ident()), weak=False)
request_finished.connect(lambda **_: ANSWERING.discard(threading.get_ident()), weak=False)


def pytest_sessionstart(session: pytest.Session) -> None:
    plugins = session.config.pluginmanager
    if reporter := plugins.get_plugin("terminalreporter"):
        plugins.register(FailureNames(reporter))


def pytest_collection_finish() -> None:
    """Freeze loaded objects, as the deployed portal does."""
    gc.freeze()


class FailureNames:
    """Print the name of each failed test at once; the tracebacks follow at the end."""

    def __init__(self, reporter: Any) -> None:
        self.reporter = reporter

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.reporter.ensure_newline()
            self.reporter.write_line(f"FAILED {report.nodeid}", red=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with the slow ones, and on PostgreSQL run those marked for it."""
    items.sort(
        key=lambda item: not item.get_closest_marker("slow")
    )  # A stable sort: pytest-randomly's order remains.
    if connection.vendor != "sqlite":
        skipped = [item for item in items if not item.get_closest_marker("postgres")]
        items[:] = [item for item in items if item.get_closest_marker("postgres")]
        config.hook.pytest_deselected(items=skipped)


@pytest.fixture(autouse=True)
def use_business_time_zone() -> Iterator[None]:
    """Use the business time zone, as requests do: late in the evening, UTC is already on the next day."""
    with timezone.override(zoneinfo.ZoneInfo(settings.BUSINESS_TIME_ZONE)):
        yield


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    tmp_path_factory: pytest.TempPathFactory, django_db_modify_db_settings_parallel_suffix: None
) -> None:
    """Use one database per test worker; on SQLite a file, because several threads write to it."""
    database = settings.DATABASES["default"]
    if database["ENGINE"].endswith("sqlite3"):
        database.setdefault("TEST", {})["NAME"] = str(tmp_path_factory.mktemp("portal") / "portal.sqlite3")


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None) -> Iterator[None]:
    """Give each test that commits its own copy of the database, because the audit tables cannot be emptied."""

    def copy_database(*_: Any) -> None:
        connections.close_all()
        # A new name for each copy: the journal of a killed process must not be replayed into the next one.
        name = f"copy{next(NUMBERS)}"
        connection.creation.clone_test_db(name, verbosity=0)
        connection.settings_dict["NAME"] = connection.creation.get_test_db_clone_settings(name)["NAME"]

    def drop_copy(*_: Any) -> None:
        wait_for_requests()
        end_other_connections()
        connections.close_all()
        connection.creation.destroy_test_db(original, verbosity=0)

    original = connection.settings_dict["NAME"]
    with pytest.MonkeyPatch.context() as patch:
        if connection.vendor == "postgresql" and connection.pg_version >= 150_000:  # type: ignore[attr-defined]
            # Copying files is faster than logging each page, and Django has no setting for it.
            suffix = f"TEMPLATE {connection.ops.quote_name(original)} STRATEGY FILE_COPY"
            patch.setattr(connection.creation, "_get_database_create_suffix", lambda *_, **__: suffix)
        patch.setattr(TransactionTestCase, "_fixture_setup", classmethod(copy_database))
        patch.setattr(TransactionTestCase, "_fixture_teardown", drop_copy)
        yield


def wait_for_requests() -> None:
    """Let the live server finish what closed pages asked for: it would save the answers for the next test."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        others = {one.ident for one in threading.enumerate() if one is not threading.current_thread()}
        if not ANSWERING & others:
            return
        time.sleep(0.01)


def end_other_connections() -> None:
    """Close connections that a test's threads left open: PostgreSQL cannot drop a database in use."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid != pg_backend_pid()"
            )


@pytest.fixture(scope="session")
def sandbox_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """Run one sandbox for the whole test run, on a free loopback port."""
    server = Sandbox(
        tmp_path_factory.mktemp("sandbox") / "sandbox.sqlite3", client_id=CLIENT_ID, secret=SECRET
    )
    server.start()
    yield server
    server.stop()


@pytest.fixture
def sandbox(sandbox_server: Sandbox) -> Sandbox:
    """The sandbox, emptied for this test."""
    sandbox_server.reset()
    return sandbox_server


@pytest.fixture
def service_client(sandbox: Sandbox) -> Client:
    """A client of the sandbox."""
    return Client(sandbox.url, client_id=CLIENT_ID, secret=SECRET)


@pytest.fixture
def portal_service(db: None, sandbox: Sandbox, settings: LazySettings) -> Iterator[Sandbox]:
    """The sandbox, with the portal configured to call it."""
    settings.SERVICING_URL = sandbox.url
    settings.SERVICING_CLIENT_ID = CLIENT_ID
    settings.SERVICING_SECRET = SECRET
    gateway.client.cache_clear()
    cache.clear()
    yield sandbox
    sandbox.heal()
    gateway.client.cache_clear()
    answers_file().unlink(missing_ok=True)  # Unsaved answers belong to this test's database.


def browser_of(role: Role, **extra: Any) -> Browser:
    """Return a browser signed in as a user with this role."""
    user = existing_user(role.value, role=role, first_name=role.label)
    # A real sign-in is slow and leaves an audit entry; the tests of sign-in do it themselves.
    signed_in = {
        SESSION_KEY: str(user.pk),
        BACKEND_SESSION_KEY: settings.AUTHENTICATION_BACKENDS[0],
        HASH_SESSION_KEY: user.get_session_auth_hash(),
    }
    session = Session.objects.create(
        session_key=get_random_string(32),
        session_data=SessionStore().encode(signed_in),
        expire_date=timezone.now() + timedelta(days=1),
    )
    browser = Browser(**extra)
    browser.cookies[settings.SESSION_COOKIE_NAME] = session.session_key
    return browser


def existing_user(username: str, password: str | None = None, **fields: Any) -> User:
    """Return a user, created without an audit entry."""
    if user := User.objects.filter(username=username).first():
        return user
    user = User(username=username, **fields)
    if password:
        user.set_password(password)
    user.save_base(raw=True)
    return user


def superuser(role: Role = Role.ADMIN) -> User:
    """Return the user that ``createsuperuser`` creates, with all of Django's flags, changed to ``role``."""
    if not User.objects.filter(username="root").exists():
        User.objects.create_superuser("root", "root@desk.example", "walnut-harbor-77")
        User.objects.filter(username="root").update(is_staff=True, is_superuser=True)
    root = User.objects.get(username="root")
    if root.role != role:
        root.role = role
        root.save_base(raw=True)  # There need be no other administrator.
    return root


def browser_of_superuser(role: Role = Role.ADMIN, **extra: Any) -> Browser:
    """Return a browser signed in as that superuser."""
    browser = Browser(**extra)
    browser.force_login(superuser(role))
    return browser


@pytest.fixture
def viewer(portal_service: Sandbox) -> Browser:
    return browser_of(Role.VIEWER)


@pytest.fixture
def servicer(portal_service: Sandbox) -> Browser:
    return browser_of(Role.SERVICER)


@pytest.fixture
def supervisor(portal_service: Sandbox) -> Browser:
    return browser_of(Role.SUPERVISOR)


@pytest.fixture
def auditor(portal_service: Sandbox) -> Browser:
    return browser_of(Role.AUDITOR)


@pytest.fixture
def admin(portal_service: Sandbox) -> Browser:
    return browser_of(Role.ADMIN)


@pytest.fixture
def anonymous(portal_service: Sandbox) -> Browser:
    return Browser()


def htmx(target: str) -> dict[str, str]:
    """Return the headers of an HTMX request for a fragment."""
    return {"HX-Request": "true", "HX-Target": target}
