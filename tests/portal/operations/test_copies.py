"""Backing up, restoring and upgrading the database, with its audit trail intact."""

import fcntl
import gzip
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from html import unescape
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from django.conf import LazySettings
from django.core import mail
from django.core.management import CommandError, call_command
from django.db import connection, connections
from django.db.backends.utils import CursorWrapper
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from portal.accounts.encryption import encrypt
from portal.accounts.models import OutgoingMail
from portal.accounts.roles import Role
from portal.approvals.models import Approval
from portal.audit.chain import append
from portal.audit.models import Actor, Entry
from portal.borrowers.models import Draft
from portal.collections.models import Promise
from portal.home.models import Snooze
from portal.jobs.models import Job, Worker
from portal.operations.labels import NEW_LABELS
from portal.records.figures import copy_day
from portal.records.models import (
    PEOPLE,
    Account,
    Application,
    Borrower,
    KeyPerson,
    NameWord,
)
from portal.records.rows import records_of
from portal.settings import BASE_DIR
from servicing.sandbox import Sandbox
from tests import databases, given, released
from tests.conftest import browser_of
from tests.portal.jobs.test_worker import wait_until, worker

RELEASED = Path(released.__file__).parent
RELEASES = sorted(file.name.removesuffix(".dump") for file in RELEASED.glob("*.dump"))
pytestmark = [pytest.mark.postgres, pytest.mark.django_db(transaction=True)]
sqlite_only = pytest.mark.skipif(connection.vendor != "sqlite", reason="as SQLite does it")


def run(command: str, *words: object, **options: object) -> str:
    out = StringIO()
    call_command(command, *words, stdout=out, **options)
    return out.getvalue()


@pytest.fixture
def copy(portal_service: Sandbox, tmp_path: Path) -> Path:
    """Create a backup with one borrower and its audit trail."""
    if connection.vendor == "postgresql" and not shutil.which("pg_dump"):
        pytest.skip("pg_dump is not installed")
    given.borrower(portal_service)
    append(Actor.system("test"), "lookup.add")
    file = tmp_path / "copy"
    assert "Written" in run("backup", file)
    assert Entry.objects.values_list("action", flat=True)[0] == "operations.backup"
    return file


@pytest.mark.slow
def test_a_scheduled_backup_deletes_only_old_backups(copy: Path) -> None:
    folder = copy.parent / "copies"
    with pytest.raises(CommandError, match=r"The folder .* doesn’t exist"):
        run("backup", folder, keep=2)
    folder.mkdir()
    others = [folder / name for name in ("20250101T000000Z.copy.part", "mine.copy", "2025.copy")]
    for file in (*others, folder / "20250101T000000Z.copy", folder / "20250102T000000Z.copy"):
        file.touch()
    output = run("backup", folder, keep=2)
    assert f"Deleted: {folder / '20250101T000000Z.copy'}." in output
    dated = sorted(set(folder.iterdir()) - set(others))
    assert (len(dated), dated[0].name) == (2, "20250102T000000Z.copy")
    assert "The backup can be restored." in run("restore", dated[1], check=True)
    assert all(file.exists() for file in others)
    for number in ("0", "-1"):
        with pytest.raises(CommandError, match="1 or more"):
            run("backup", folder, keep=int(number))
    assert len(list(folder.iterdir())) == 5


@pytest.mark.slow
def test_a_new_backup_survives_a_clock_set_back(copy: Path) -> None:
    folder = copy.parent / "copies"
    folder.mkdir()
    early, late, later = (folder / f"{day}T000000Z.copy" for day in (20250101, 20990101, 20990102))
    for file in (early, late, later):
        file.touch()
    output = run("backup", folder, keep=2)
    assert [file for file in (late, later) if f"Deleted: {file}." in output] == [late, later]
    assert "The backup can be restored." in run("restore", max(folder.iterdir()), check=True)
    assert (early.exists(), len(list(folder.iterdir()))) == (True, 2)


def test_an_unwritable_folder_is_reported() -> None:
    with pytest.raises(CommandError, match="/proc/copy cannot be written: "):
        run("backup", "/proc/copy")
    with pytest.raises(CommandError, match="a folder"):
        run("backup", ".")


def test_a_restore_recovers_records_and_the_trail(copy: Path, portal_service: Sandbox) -> None:
    entries = Entry.objects.exclude(action="operations.backup").count()
    Borrower.objects.all().delete()
    append(Actor.system("test"), "lookup.archive")
    assert "The audit trail is intact: " in run("restore", copy, replace=True)
    assert Borrower.objects.count() == 1
    assert not Entry.objects.filter(action="lookup.archive").exists()
    assert Entry.objects.values_list("action", flat=True)[0] == "operations.restore"
    assert Entry.objects.count() == entries + 1
    with pytest.raises(Exception, match="append-only"), connection.cursor() as cursor:
        cursor.execute("UPDATE audit_entry SET action = 'x'")


def test_each_release_has_a_database_of_both_kinds() -> None:
    versions = re.findall(r"(?m)^## \[([\d.]+)\]", (BASE_DIR / "CHANGELOG.md").read_text())
    upgraded = sorted(one for one in versions if one >= "1")
    assert upgraded == RELEASES, "Run tests.released.make on SQLite and on PostgreSQL."
    assert all((RELEASED / f"{release}.sqlite3.gz").exists() for release in RELEASES)


def test_values_of_version_1_get_the_spelling_of_the_interface() -> None:
    respelling = import_module("portal.records.migrations.0012_known_spelling")
    databases.go_back("registry", "0031")
    try:
        old = old_models("0031_remove_columns_of_repayments")
        records = old.get_model("registry", "Record").objects
        records.create(kind="borrower", uuid="b", category="Business", subtype="limited_liability_company")
        spellings = [("Loc", "Active"), ("LOC", "ACTIVE"), ("Odd", "In review")]
        for number, (product, status) in enumerate(spellings):
            records.create(kind="loan", uuid=f"loan-{number}", category=product, status=status)
        respelling.respell(old, None)
    finally:
        run("migrate", "registry", verbosity=0)
    borrower = Borrower.objects.get()
    assert (borrower.type, borrower.legal_form) == ("BUSINESS", "LIMITED_LIABILITY_COMPANY")
    columns = Account.objects.order_by("uuid").values_list("product", "status")
    assert list(columns) == [("LOC", "ACTIVE")] * 2 + [("Odd", "In review")]


def test_texts_of_version_1_are_found_after_the_upgrade() -> None:
    """It had a mark around each line of a text, two before a name, and texts of all kinds."""
    texts = {
        "borrower": ("ǂǂcedar foodsǂ\nǂaustinǂ\nǂtexasǂ\n", "\ncedar foods\naustin\ntexas\ntx\n"),
        "key_person": ("ǂǂana ortizǂ\n", "\nana ortiz\ntx\n"),
        "loan": ("ǂloanǂ\nǂactiveǂ\nǂext2207ǂ\n\nǂǂovenǂ\n", "\noven\next2207\n"),
        "application": ("ǂloanǂ\n", ""),
    }
    labels = {"borrower": "Cedar Foods", "key_person": "Ana Ortiz", "loan": "Oven"}
    databases.go_back("registry", "0031")
    try:
        records = old_models("0031_remove_columns_of_repayments").get_model("registry", "Record").objects
        for kind, (text, _) in texts.items():
            values = {"search_text": text, "state": "TX" if kind in PEOPLE else "", "category": "LOAN"}
            records.create(kind=kind, uuid=kind, label=labels.get(kind, ""), status="ACTIVE", **values)
        for name in ("0032", "0031"):
            run("migrate", "registry", name, verbosity=0)
    finally:
        run("migrate", "registry", verbosity=0)
    assert {kind: records_of(kind).get().search_text for kind in texts} == {
        kind: text for kind, (_, text) in texts.items()
    }
    assert [one.folded_name for one in (Borrower.objects.get(), KeyPerson.objects.get())] == [
        "cedarfoods",
        "anaortiz",
    ]
    assert {word.word for word in NameWord.objects.all()} == {"cedar", "foods", "ortiz"}


def old_models(migration: str) -> Any:
    """The models of the registry as they were after this migration."""
    return MigrationExecutor(connection).loader.project_state([("registry", migration)]).apps


@pytest.mark.slow
@pytest.mark.parametrize("release", RELEASES)
def test_a_database_of_each_release_can_be_upgraded(
    release: str, tmp_path: Path, portal_service: Sandbox, settings: LazySettings
) -> None:
    settings.HAS_MAIL = True
    lacks_rows = connection.vendor == "sqlite" and release < "2"  # Rows that the file lacks are added first.

    file = tmp_path / "released"
    if connection.vendor == "sqlite":
        file.write_bytes(gzip.decompress((RELEASED / f"{release}.sqlite3.gz").read_bytes()))
        if lacks_rows:
            with closing(sqlite3.connect(file)) as old:
                add_application(old)
                add_unfinished_work(old)
    else:
        file.write_bytes((RELEASED / f"{release}.dump").read_bytes())
    assert "The audit trail is intact: " in run("restore", file, replace=True)
    owner = Borrower.objects.exclude(answer=None).get(name__startswith="Harbor")
    loan = Account.objects.get(kind="loan")
    assert KeyPerson.objects.exclude(answer=None).filter(borrower_uuid=owner.uuid).exists()
    approval, draft = Approval.objects.get(), Draft.objects.get()
    servicer, supervisor = browser_of(Role.SERVICER), browser_of(Role.SUPERVISOR)
    assert Promise.objects.exists()
    for browser, address, word in [
        (servicer, "/borrowers/?q=neil", "O'Neil & Daughters, LLC"),
        (servicer, owner.get_absolute_url(), "Asked for a new schedule."),
        (servicer, loan.get_absolute_url(), loan.uuid),
        (servicer, f"/collections/contacts/loan/{loan.uuid}/", "Pays by wire."),
        (servicer, f"/borrowers/new/{draft.pk}/business/", "Lindqvist Bakery"),
        (supervisor, approval.get_absolute_url(), "Articles of amendment"),
        (supervisor, "/status/", "Portal version"),
    ]:
        page = browser.get(address)
        assert page.status_code == 200
        assert word in unescape(page.content.decode())
    if lacks_rows:
        application = Application.objects.get()
        assert (application.product, application.decision) == ("LINE_OF_CREDIT", "APPROVED")
        exported = servicer.get("/applications/export/?all=1&q=51aa7f20").getvalue().decode()
        added = application.created_at.isoformat(timespec="seconds")
        assert (
            f'"application-1","{owner}","{owner.uuid}","LINE_OF_CREDIT","40000.50","{copy_day(application)}",'
            f'"APPROVED","1","14.92","2026-11-20 10:31:07 PST","{added}",""\r\n' in exported
        )
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM borrowers_draft")
        assert "Lindqvist" not in str(cursor.fetchall())
    unfinished = {job.name for job in Job.objects.all() if job.is_open}
    assert "lookup.refresh_portfolio" in unfinished
    call_command("work", batch=True)
    jobs = Job.objects.filter(name__in=unfinished)
    assert [(job.name, job.words) for job in jobs if job.state != "done"] == []
    if lacks_rows:
        assert {"accounts.send_mail", "documents.remove"} <= unfinished
        assert Snooze.objects.get().key == "checklist:b-1"
        assert OutgoingMail.objects.get().state == "sent"
        assert [(one.subject, one.to) for one in mail.outbox] == [("Promises due", ["maya@desk.example"])]


@pytest.mark.slow
@sqlite_only
def test_a_plain_migrate_of_version_1_stops(tmp_path: Path) -> None:
    file = tmp_path / "portal.sqlite3"
    file.write_bytes(gzip.decompress((RELEASED / "1.0.0.sqlite3.gz").read_bytes()))
    environment = os.environ | {"DEBUG": "1", "ENV_FILE": "/dev/null", "DATABASE_URL": f"sqlite:///{file}"}

    def manage(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "manage.py", *words],
            cwd=BASE_DIR,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    refused = manage("migrate", "--verbosity", "0")
    assert refused.returncode == 1
    assert "This database is of version 1.0. Type: manage.py upgrade" in refused.stderr
    for _ in range(2):
        done = manage("upgrade", "--verbosity", "0")
        assert (done.returncode, done.stderr) == (0, "")
    with closing(sqlite3.connect(file)) as database:
        labels = {label for (label,) in database.execute("SELECT app_label FROM django_content_type")}
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert not labels & NEW_LABELS.keys()
    assert [name for name in tables if name.startswith(tuple(f"{label}_" for label in NEW_LABELS))] == []


def add_application(old: sqlite3.Connection) -> None:
    """Add an application for a line of credit, which the released databases lack."""
    columns = [row[1] for row in old.execute("PRAGMA table_info(registry_record)")]
    loan = old.execute("SELECT * FROM registry_record WHERE kind = 'loan'").fetchone()
    answer = {
        "uuid": "application-1",
        "product": "LINE_OF_CREDIT",
        "amount": 40000.5,
        "created_at": "2026-11-20 10:31:07 PST",
        "offers": [{"uuid": "51aa7f20-0000-4000-8000-000000000001", "apr": 14.92}],
        "status": {"decision": "APPROVED"},
    }
    row = dict(zip(columns, loan, strict=True)) | {"id": None, "kind": "application", "uuid": answer["uuid"]}
    row |= {"category": answer["product"], "status": "APPROVED", "amount": 40000.5, "state": ""}
    row |= {"search_text": f"ǂ{answer['offers'][0]['uuid']}ǂ\n", "answer": json.dumps(answer)}
    row |= dict.fromkeys(["past_due", "key_date", "rate", "due_amount", "remaining", "principal"])
    marks = ", ".join("?" * len(columns))
    names = ", ".join(columns)
    old.execute(f"INSERT INTO registry_record ({names}) VALUES ({marks})", [row[name] for name in columns])
    old.commit()


def add_unfinished_work(old: sqlite3.Connection) -> None:
    """Add a message that waits, a job of a worker that is gone, one under an old name, and a snoozed item."""
    sealed = encrypt(json.dumps(["Promises due", "One promise is due today."]))
    old.execute(
        "INSERT INTO accounts_outgoingmail (key, address, sealed, state, attempts, problem, created_at, due_at) "
        "VALUES ('promises:1', 'maya@desk.example', ?, 'waiting', 0, '', ?, ?)",
        (sealed, *[f"{timezone.now():%Y-%m-%d %H:%M:%S}"] * 2),
    )
    columns = [row[1] for row in old.execute("PRAGMA table_info(jobs_job)")]
    job = dict(zip(columns, old.execute("SELECT * FROM jobs_job").fetchone(), strict=True))
    job |= {
        "id": uuid4().hex,
        "name": "accounts.send_mail",
        "key": "accounts.send_mail",
        "label": "Send email",
    }
    job |= {"arguments": "{}", "state": "running", "attempts": 1, "worker": "gone", "task_id": str(uuid4())}
    job["lease_until"] = job["started_at"] = job["created_at"]
    marks = ", ".join("?" * len(columns))
    removal = {"id": uuid4().hex, "name": "summaries.remove", "key": "summaries.remove", "state": "waiting"}
    for row in (job, job | removal):
        old.execute(
            f"INSERT INTO jobs_job ({', '.join(columns)}) VALUES ({marks})", [row[name] for name in columns]
        )
    old.execute(
        "INSERT INTO home_snooze (key, label, until, reason, by_id, by_name, at) "
        "VALUES ('handover:b-1', 'Harbor Bakery', '2030-01-01', 'On vacation', 1, 'Maya', '2026-11-01 12:00:00')"
    )
    old.commit()


def test_an_upgrade_rejects_migrations_of_another_version() -> None:
    databases.run(
        "DELETE FROM django_migrations WHERE app = 'notes'",
        "INSERT INTO django_migrations (app, name, applied) VALUES ('notes', '0007_other', CURRENT_TIMESTAMP)",
    )
    with pytest.raises(
        CommandError,
        match=r"This database belongs to another version of the portal: it has notes\.0007_other\.",
    ):
        run("upgrade", verbosity=0)


@pytest.mark.slow
def test_an_interrupted_upgrade_can_be_repeated() -> None:
    databases.go_back("registry", "0014")
    databases.run(
        "DELETE FROM django_migrations WHERE app = 'registry' AND name >= '0008'",
        "DROP TABLE registry_sharedcount",
        "DROP INDEX applications_by_submitted_at",
        "ALTER TABLE registry_record DROP COLUMN submitted_at",
        "DROP INDEX loans_by_amount",
    )
    run("upgrade", verbosity=0)
    with connection.cursor() as cursor:
        assert "account_by_amount" in connection.introspection.get_constraints(cursor, Account._meta.db_table)


def test_a_backup_is_private_and_overwrites_no_file(copy: Path) -> None:
    assert copy.stat().st_mode & 0o777 == 0o600
    with pytest.raises(CommandError, match="File exists"):
        run("backup", copy)
    with pytest.raises(CommandError, match=r"The folder .* doesn’t exist"):
        run("backup", copy.parent / "nowhere" / "copy")
    assert [file.name for file in copy.parent.iterdir()] == ["copy"]


def test_a_mistaken_restore_changes_nothing(copy: Path) -> None:
    append(Actor.system("test"), "lookup.archive")
    with pytest.raises(CommandError, match="Add --replace"):
        run("restore", copy)
    with pytest.raises(CommandError, match="doesn’t exist"):
        run("restore", copy.parent / "another", replace=True)
    other, whole = copy.parent / "other", copy.read_bytes()
    for content in (b"this is no database" * 100, whole[: len(whole) - 5_000]):
        other.write_bytes(content)
        with pytest.raises(CommandError):
            run("restore", other, replace=True)
    assert Entry.objects.filter(action="lookup.archive").exists()


@pytest.mark.slow
def test_checking_a_backup_changes_nothing(copy: Path, portal_service: Sandbox) -> None:
    append(Actor.system("test"), "accounts.sign_in")
    before, folder = Entry.objects.count(), set(copy.parent.iterdir())
    with connection.cursor() as cursor:
        databases_before = list_databases(cursor)
    output = run("restore", copy, check=True)
    assert output.startswith("The ")
    assert output.endswith("The backup can be restored. Nothing was changed.\n")
    assert (Entry.objects.count(), set(copy.parent.iterdir())) == (before, folder)
    with connection.cursor() as cursor:
        wait_until(
            lambda: list_databases(cursor) <= databases_before
        )  # Another test may be checking a backup too.


@pytest.mark.slow
def test_a_damaged_backup_fails_the_check(copy: Path) -> None:
    damaged = copy.with_name("damaged")
    damaged.write_bytes(copy.read_bytes()[:5000])
    with pytest.raises(
        CommandError,
        match=r"can’t be restored\. \S+damaged is(n’t| a damaged) |can’t be restored\. pg_restore",
    ):
        run("restore", damaged, check=True)
    with pytest.raises(CommandError, match="doesn’t exist"):
        run("restore", copy.with_name("nowhere"), check=True)


def list_databases(cursor: CursorWrapper) -> set[str]:
    """Return the folders beside SQLite's file, or the databases that PostgreSQL has for checks."""
    if connection.vendor == "sqlite":
        beside = Path(connection.settings_dict["NAME"]).parent
        return {one.name for one in beside.iterdir() if one.is_dir()}
    cursor.execute("SELECT datname FROM pg_database WHERE starts_with(datname, 'check_')")
    return {name for (name,) in cursor.fetchall()}


@pytest.mark.slow
def test_a_database_in_use_is_not_replaced(copy: Path, portal_service: Sandbox) -> None:
    append(Actor.system("test"), "lookup.archive")
    with worker(portal_service):
        wait_until(Worker.objects.exists)
        connections.close_all()
        with pytest.raises(CommandError, match="Web or worker processes use the database"):
            run("restore", copy, replace=True)
        assert Entry.objects.filter(action="lookup.archive").exists()
    assert "The audit trail is intact" in run("restore", copy, replace=True)


@pytest.mark.slow
@sqlite_only
def test_a_database_in_use_is_replaced_on_request(copy: Path, portal_service: Sandbox) -> None:
    with open(f"{connection.settings_dict['NAME']}.in-use", "w") as mark:
        fcntl.flock(mark, fcntl.LOCK_SH)
        assert "The audit trail is intact" in run("restore", copy, replace=True, while_in_use=True)


@pytest.fixture
def new_database(tmp_path: Path) -> Iterator[str]:
    """Create an empty database and yield its URL."""
    if connection.vendor == "sqlite":
        yield f"sqlite:///{tmp_path / 'new.sqlite3'}"
        return
    server, name = databases.database_url(), f"new_{os.getpid()}"
    with psycopg.connect(server, autocommit=True) as administrator:
        administrator.execute(f"CREATE DATABASE {name}".encode())
        yield f"{server.rpartition('/')[0]}/{name}"
        administrator.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@pytest.mark.slow
def test_two_concurrent_upgrades_succeed(new_database: str) -> None:
    environment = os.environ | {"DATABASE_URL": new_database}
    command = [sys.executable, "manage.py", "upgrade", "--verbosity", "0"]
    both = [
        subprocess.Popen(command, env=environment, cwd=BASE_DIR, stderr=subprocess.PIPE, text=True)
        for _ in "12"
    ]
    assert [(one.communicate(timeout=120)[1], one.returncode) for one in both] == [("", 0), ("", 0)]
