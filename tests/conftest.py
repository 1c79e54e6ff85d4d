"""Fixtures for all tests: the lending service's sandbox over real HTTP, and a signed-in browser for each role."""

import gc
import itertools
import os
import tempfile
import zoneinfo
from collections.abc import Iterator
from concurrent.futures import wait
from pathlib import Path
from typing import Any

import django
import hypothesis
import pytest

# Tests must not depend on the environment or the .env file. Django reads its settings in django.setup().
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
from django.db import connection, connections
from django.test import Client as Browser
from django.test import TransactionTestCase
from django.utils import timezone

from portal import gateway
from portal.accounts.models import User
from portal.accounts.roles import Role
from portal.audit.spool import ANSWERS
from portal.live import reading
from servicing import Client
from servicing.sandbox import Sandbox
from tests import databases

# Each test process, and each portal that it starts, has its own data folder.
settings.DATA_DIR = Path(databases.FOLDER.name)
os.environ["DATA_DIR"] = databases.FOLDER.name

# The speed of a machine says nothing about the code.
hypothesis.settings.register_profile(
    "desk", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("desk")

# The real hasher is slow on purpose.
settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

CLIENT_ID = "test-desk"
SECRET = "3f2b8c1e-9d47-4a60-b1c5-7e8f90a2d364"


def pytest_sessionstart(session: pytest.Session) -> None:
    plugins = session.config.pluginmanager
    if reporter := plugins.get_plugin("terminalreporter"):
        plugins.register(FailureNames(reporter))


def pytest_collection_finish() -> None:
    """Look for garbage as seldom as the deployed portal does: a tenth of the CPU."""
    gc.freeze()
    gc.set_threshold(50_000)


class FailureNames:
    """Names each test that fails at once; the reasons follow at the end."""

    def __init__(self, reporter: Any) -> None:
        self.reporter = reporter

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.reporter.ensure_newline()
            self.reporter.write_line(f"FAILED {report.nodeid}", red=True)


# Browsers, other servers, processes of their own, walks through everything: "make test-fast" leaves them out.
SLOW = [
    "browser",
    "image",
    "portal/applications/test_any_shape.py",
    "portal/approvals",
    "portal/audit/test_answers.py",
    "portal/audit/test_checkpoints.py",
    "portal/audit/test_faults.py",
    "portal/audit/test_killing.py",
    "portal/audit/test_resolve.py",
    "portal/audit/test_spool.py",
    "portal/audit/test_view_log.py",
    "portal/borrowers/test_create.py",
    "portal/borrowers/test_draft.py",
    "portal/borrowers/test_edit.py",
    "portal/borrowers/test_edit_again.py",
    "portal/borrowers/test_edit_at_once.py",
    "portal/borrowers/test_edit_conflict.py",
    "portal/borrowers/test_edit_input.py",
    "portal/borrowers/test_edit_person.py",
    "portal/documents",
    "portal/jobs/test_worker.py",
    "portal/messaging/test_counts.py",
    "portal/messaging/test_sync.py",
    "portal/operations/test_copies.py",
    "portal/operations/test_demo.py",
    "portal/operations/test_doctor.py",
    "portal/operations/test_init.py",
    "portal/operations/test_install.py",
    "portal/operations/test_logs.py",
    "portal/operations/test_metrics.py",
    "portal/operations/test_serving.py",
    "portal/operations/test_status.py",
    "portal/operations/test_tracing.py",
    "portal/operations/test_uploads.py",
    "portal/test_any_account.py",
    "portal/test_cache.py",
    "portal/test_database_away.py",
    "portal/test_every_form.py",
    "portal/test_figures.py",
    "portal/test_generate.py",
    "portal/test_hostile.py",
    "portal/test_list_orders.py",
    "portal/test_mail.py",
    "portal/test_postgres.py",
    "portal/test_roles.py",
    "portal/test_search.py",
    "portal/test_secrets.py",
    "portal/test_settings.py",
    "portal/test_sign_in.py",
    "portal/test_strange_answers.py",
    "portal/test_typed_numbers.py",
    "portal/test_without_scripts.py",
    "sandbox/test_checks.py",
    "sandbox/test_command_line.py",
    "sandbox/test_openapi.py",
    "sandbox/test_seed.py",
    "sandbox/test_store.py",
    "servicing/test_connections.py",
    "servicing/test_first_day.py",
    "servicing/test_wire.py",
]
# These test what is sent and shown: the steps of a form, a page, a PDF, a header. That is the same on each database,
# and other tests run the statements.
ONE_DATABASE = [
    "portal/applications/test_any_shape.py",
    "portal/applications/test_detail.py",
    "portal/applications/test_follow.py",
    "portal/applications/test_open.py",
    "portal/applications/test_submit.py",
    "portal/borrowers/test_checklist.py",
    "portal/borrowers/test_detail.py",
    "portal/borrowers/test_draft.py",
    "portal/borrowers/test_edit.py",
    "portal/borrowers/test_edit_again.py",
    "portal/borrowers/test_edit_input.py",
    "portal/borrowers/test_edit_person.py",
    "portal/credit_lines/test_detail.py",
    "portal/documents/test_borrower.py",
    "portal/documents/test_document.py",
    "portal/documents/test_pdf.py",
    "portal/home/test_help.py",
    "portal/loans/test_detail.py",
    "portal/loans/test_schedule.py",
    "portal/lookup/test_open_as.py",
    "portal/lookup/test_record.py",
    "portal/messaging/test_detail.py",
    "portal/messaging/test_life.py",
    "portal/messaging/test_of_account.py",
    "portal/notes",
    "portal/operations/test_compression.py",
    "portal/operations/test_headers.py",
    "portal/operations/test_job.py",
    "portal/operations/test_logs.py",
    "portal/operations/test_metrics.py",
    "portal/operations/test_tracing.py",
    "portal/operations/test_uploads.py",
    "portal/repayments/test_detail.py",
    "portal/test_any_account.py",
    "portal/test_cache.py",
    "portal/test_every_form.py",
    "portal/test_list_cells.py",
    "portal/test_nulls.py",
    "portal/test_panels.py",
    "portal/test_roles.py",
    "portal/test_strange_answers.py",
    "portal/test_typed_amounts.py",
    "portal/test_without_scripts.py",
    "portal/ui",
]


# Each has a test of half a minute or more, which would run alone at the end.
LONGEST = [
    "browser/test_bad_input.py",
    "browser/test_collections.py",
    "browser/test_people.py",
    "portal/documents/test_long.py",
    "portal/operations/test_demo.py",
    "portal/operations/test_init.py",
    "portal/test_figures.py",
    "portal/test_typed_numbers.py",
]


def files_in(names: list[str]) -> set[Path]:
    """The files of a list, those of its folders included."""
    paths = [Path(__file__).parent / name for name in names]
    assert all(path.exists() for path in paths), "A listed file is gone"
    return {file for path in paths for file in ([path] if path.is_file() else path.rglob("*.py"))}


SLOW_FILES, ONE_DATABASE_FILES, LONGEST_FILES = files_in(SLOW), files_in(ONE_DATABASE), files_in(LONGEST)
differing = [file for file in ONE_DATABASE_FILES if "connection.vendor" in file.read_text()]
assert not differing, f"These have tests that differ by database: {differing}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what is slow, begin with the longest, and on PostgreSQL leave out what ran on SQLite and is the same."""
    items.sort(key=lambda item: item.path not in LONGEST_FILES)  # After pytest-randomly, whose order stays.
    for item in items:
        if is_slow(item):
            item.add_marker(pytest.mark.slow)
    if connection.vendor != "sqlite":
        once = [item for item in items if not needs_each_database(item)]
        items[:] = [item for item in items if needs_each_database(item)]
        config.hook.pytest_deselected(items=once)


def is_slow(item: pytest.Item) -> bool:
    commits = item.get_closest_marker("django_db")
    return bool(commits and commits.kwargs.get("transaction")) or item.path in SLOW_FILES


def needs_each_database(item: Any) -> bool:
    has_database = item.get_closest_marker("django_db") or DATABASE_FIXTURES & {*item.fixturenames}
    return bool(has_database) and item.path not in ONE_DATABASE_FILES


DATABASE_FIXTURES = {"db", "transactional_db", "live_server"}


@pytest.fixture(autouse=True)
def own_checkpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: LazySettings) -> None:
    """Give each test, and the processes it starts, its own checkpoints of the audit trail."""
    settings.AUDIT_CHECKPOINT_DIR = str(tmp_path / "checkpoints")
    monkeypatch.setenv("AUDIT_CHECKPOINT_DIR", settings.AUDIT_CHECKPOINT_DIR)


@pytest.fixture(autouse=True)
def day_of_staff() -> Iterator[None]:
    """Use the business time zone in tests as in requests: for some hours of each night, UTC is a day ahead."""
    with timezone.override(zoneinfo.ZoneInfo(settings.BUSINESS_TIME_ZONE)):
        yield


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    tmp_path_factory: pytest.TempPathFactory, django_db_modify_db_settings_parallel_suffix: None
) -> None:
    """Use one database per worker; on SQLite a file as in production, because several threads write to it."""
    database = settings.DATABASES["default"]
    if database["ENGINE"].endswith("sqlite3"):
        database.setdefault("TEST", {})["NAME"] = str(tmp_path_factory.mktemp("portal") / "portal.sqlite3")


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None) -> Iterator[None]:
    """Give each test that commits a copy of the database, because the audit tables cannot be emptied afterwards."""

    def take_copy(*_: Any) -> None:
        connections.close_all()
        # Each copy has a new name, so that the journal of a killed process is not read into the next copy.
        name = f"copy{next(numbers)}"
        connection.creation.clone_test_db(name, verbosity=0)
        connection.settings_dict["NAME"] = connection.creation.get_test_db_clone_settings(name)["NAME"]

    def throw_away(*_: Any) -> None:
        end_other_connections()
        connections.close_all()
        connection.creation.destroy_test_db(original, verbosity=0)

    original, numbers = connection.settings_dict["NAME"], itertools.count()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_setup", classmethod(take_copy))
        patch.setattr(TransactionTestCase, "_fixture_teardown", throw_away)
        yield


def end_other_connections() -> None:
    """End what a thread of a test left open: PostgreSQL drops no database that is in use."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid != pg_backend_pid()"
            )


@pytest.fixture(scope="session")
def sandbox_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """One sandbox for the whole test run, on a free loopback port."""
    server = Sandbox(
        tmp_path_factory.mktemp("sandbox") / "sandbox.sqlite3", client_id=CLIENT_ID, secret=SECRET
    )
    server.start()
    yield server
    server.stop()


@pytest.fixture
def sandbox(sandbox_server: Sandbox) -> Sandbox:
    """The sandbox without data."""
    sandbox_server.reset()
    return sandbox_server


@pytest.fixture
def service_client(sandbox: Sandbox) -> Client:
    """A client of the sandbox."""
    return Client(sandbox.url, client_id=CLIENT_ID, secret=SECRET)


@pytest.fixture
def portal_service(db: None, sandbox: Sandbox, settings: LazySettings) -> Iterator[Sandbox]:
    """The sandbox, with the portal configured to use it."""
    settings.SERVICING_URL = sandbox.url
    settings.SERVICING_CLIENT_ID = CLIENT_ID
    settings.SERVICING_SECRET = SECRET
    gateway.client.cache_clear()
    cache.clear()
    yield sandbox
    sandbox.heal()
    # Reads that a page started must not write into the next test's database.
    wait_for_reads()
    gateway.client.cache_clear()
    if ANSWERS.path.is_file() and ANSWERS.entries():  # They belong to this test's database.
        ANSWERS.path.unlink()


def wait_for_reads() -> None:
    """Wait for calls that outlived the page that started them."""
    wait(set(reading._running), timeout=10)


def browser_of(role: Role, **extra: Any) -> Browser:
    """A browser signed in as a user with this role."""
    browser = Browser(**extra)
    browser.force_login(existing_user(role.value, role=role, first_name=role.label))
    return browser


def existing_user(username: str, password: str | None = None, **fields: Any) -> User:
    """A user whose account is older than the audit trail."""
    if not User.objects.filter(username=username).exists():
        user = User(username=username, **fields)
        if password:
            user.set_password(password)
        user.save_base(raw=True)
    return User.objects.get(username=username)


def superuser(role: Role = Role.ADMIN) -> User:
    """The user that ``createsuperuser`` creates, with all of Django's flags, later changed to ``role``."""
    if not User.objects.filter(username="root").exists():
        User.objects.create_superuser("root", "root@desk.example", "walnut-harbor-77")
        User.objects.filter(username="root").update(is_staff=True, is_superuser=True)
    root = User.objects.get(username="root")
    if root.role != role:
        root.role = role
        root.save()
    return root


def browser_of_superuser(role: Role = Role.ADMIN, **extra: Any) -> Browser:
    """A browser signed in as that superuser."""
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
    """The headers of an HTMX request for a fragment."""
    return {"HX-Request": "true", "HX-Target": target}
