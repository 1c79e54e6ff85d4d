"""The audit trail under attack by SQL: the database refuses changes, and the check finds forced ones."""

import logging
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import time_machine
from django.conf import settings as project
from django.core.management import CommandError, call_command
from django.db import IntegrityError, ProgrammingError, connection, transaction
from django.test import Client as Browser
from django.utils import timezone

from portal.accounts.roles import Role
from portal.audit import guard
from portal.audit.chain import HASH_FORMAT, HASHED_FIELDS, append, entry_hash
from portal.audit.guard import GENESIS_HASH
from portal.audit.integrity import is_intact, verify_chain
from portal.audit.models import Actor, Entry
from portal.jobs import queue
from portal.jobs.kinds import find_kind
from portal.jobs.models import Job
from portal.jobs.queue import start_job
from portal.operations import doctor
from servicing.sandbox import Sandbox
from tests import databases
from tests.conftest import browser_of
from tests.portal.pages import page

pytestmark = pytest.mark.postgres

MAYA = Actor(id=7, name="Maya Chen", role="servicer", ip="2001:db8::1", request_id="r-1")
COLUMNS = ", ".join(field.column for field in Entry._meta.concrete_fields if field.column != "id")
STRANGE = COLUMNS.replace("previous_hash, hash,", f"'{'a' * 64}', '{'b' * 64}',")
FOLLOWS = COLUMNS.replace("previous_hash, hash,", f"hash, '{'b' * 64}',")


def run(*statements: str) -> None:
    with transaction.atomic():
        databases.run(*statements)


def append_five_entries() -> list[Entry]:
    return [append(MAYA, "lookup.correct", reason=f"Reason {number}") for number in range(1, 6)]


@pytest.mark.django_db
class TestRefusal:
    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE audit_entry SET reason = 'Another' WHERE id = 2",
            "UPDATE audit_entry SET id = 9 WHERE id = 5",
            "DELETE FROM audit_entry WHERE id = 5",
            "DELETE FROM audit_entry",
            f"INSERT INTO audit_entry (id, {COLUMNS}) SELECT 6, {STRANGE} FROM audit_entry WHERE id = 5",
            f"INSERT INTO audit_entry (id, {COLUMNS}) SELECT 0, {STRANGE} FROM audit_entry WHERE id = 5",
            f"INSERT INTO audit_entry (id, {COLUMNS}) SELECT 8, {FOLLOWS} FROM audit_entry WHERE id = 5",
            f"INSERT INTO audit_entry ({COLUMNS}) SELECT {FOLLOWS} FROM audit_entry WHERE id = 4",
        ],
    )
    def test_the_database_refuses_every_change(self, statement: str) -> None:
        append_five_entries()
        with pytest.raises(IntegrityError, match="Audit entries"):
            run(statement)
        assert verify_chain().found is None

    @pytest.mark.skipif(connection.vendor != "sqlite", reason="SQLite’s own way")
    @pytest.mark.parametrize(
        ("number", "name"), [(2, "'x'"), (6, "(SELECT hash FROM audit_entry WHERE id = 3)")]
    )
    def test_insert_or_replace_is_refused(self, number: int, name: str) -> None:
        append_five_entries()
        row = f"SELECT {number}, {COLUMNS.replace('previous_hash, hash', f'hash, {name}')} FROM audit_entry"
        with pytest.raises(IntegrityError, match="follow the last one"):
            run(f"INSERT OR REPLACE INTO audit_entry (id, {COLUMNS}) {row} WHERE id = 5")

    @pytest.mark.skipif(connection.vendor != "postgresql", reason="PostgreSQL’s own ways")
    @pytest.mark.parametrize(
        "statements",
        [
            ["TRUNCATE audit_entry CASCADE"],
            ["SET LOCAL session_replication_role = replica", "DELETE FROM audit_entry"],
        ],
    )
    def test_truncate_and_replica_mode_are_refused(self, statements: list[str]) -> None:
        append_five_entries()
        with pytest.raises(IntegrityError, match="append-only"):
            run(*statements)

    @pytest.mark.skipif(connection.vendor != "sqlite", reason="a file that anybody can open")
    @pytest.mark.django_db(transaction=True)
    def test_another_program_cannot_change_entries(self) -> None:
        append_five_entries()
        other = sqlite3.connect(connection.settings_dict["NAME"])
        for statement in ("DELETE FROM audit_entry", "UPDATE audit_entry SET reason = ''"):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                other.execute(statement)
        other.close()

    def test_migrate_restores_missing_triggers(self) -> None:
        guard.remove_triggers(connection)
        assert len(guard.missing_triggers(connection)) == 3
        call_command("migrate", verbosity=0)
        assert guard.missing_triggers(connection) == []


SWAP = [f"UPDATE audit_entry SET id = {a} WHERE id = {b}" for a, b in ((99, 2), (2, 3), (3, 99))]
MAKE_ROOM = [f"UPDATE audit_entry SET id = {number + 1} WHERE id = {number}" for number in (5, 4, 3)]
FORGED = f"SELECT 3, {STRANGE} FROM audit_entry WHERE id = 2"


@pytest.mark.django_db
class TestVerify:
    @pytest.mark.parametrize(
        ("attack", "named"),
        [
            ([], "5 entries, one unbroken chain."),
            (["UPDATE audit_entry SET reason = 'Another' WHERE id = 3"], "Entry 3 was altered"),
            (["UPDATE audit_entry SET actor_name = 'Ravi' WHERE id = 1"], "Entry 1 was altered"),
            (["DELETE FROM audit_entry WHERE id = 3"], "Entry 3 was removed: entry 4"),
            (["DELETE FROM audit_entry WHERE id = 1"], "Entry 1 was removed: entry 2"),
            (SWAP, "Entry 2 was moved here"),
            ([*MAKE_ROOM, f"INSERT INTO audit_entry (id, {COLUMNS}) {FORGED}"], "Entry 3 was altered"),
        ],
        ids=["untouched", "altered", "first altered", "removed", "first removed", "swapped", "inserted"],
    )
    def test_the_first_wrong_entry_is_reported(self, attack: list[str], named: str) -> None:
        append_five_entries()
        if attack:
            guard.remove_triggers(connection)
        run(*attack)
        assert named in verify_audit()

    def test_the_hash_covers_microseconds(self) -> None:
        entry = append_five_entries()[0]
        guard.remove_triggers(connection)
        moved = entry.at.replace(microsecond=(entry.at.microsecond + 1) % 1_000_000)
        with connection.cursor() as cursor:
            cursor.execute("UPDATE audit_entry SET at = %s WHERE id = 1", [moved])
        assert "Entry 1 was altered" in verify_audit()

    def test_an_entry_rewritten_with_its_hash_is_reported(self) -> None:
        append_five_entries()
        guard.remove_triggers(connection)
        rewrite_entry(3, reason="Another")
        assert "Entry 3 was rewritten with its hash" in verify_audit()

    def test_an_inserted_entry_with_a_valid_hash_is_reported(self) -> None:
        append_five_entries()
        guard.remove_triggers(connection)
        run(*MAKE_ROOM)
        forged = Entry.objects.get(pk=2)
        forged.pk, forged.previous_hash, forged.reason = 3, "c" * 64, "Slipped in"
        forged.hash = entry_hash(forged)
        forged.save()
        assert "Entry 3 was inserted: no entry precedes it" in verify_audit()

    def test_each_check_is_recorded(self) -> None:
        append_five_entries()
        verify_audit()
        entry = Entry.objects.get(action="audit.verify")
        assert (entry.result, entry.actor_role, entry.detail["entries"]) == ("unbroken", "system", 5)


@pytest.mark.django_db
class TestReport:
    """A failed check shows on the home page, on the job and in the doctor."""

    @pytest.mark.slow
    @pytest.mark.parametrize("attack", ["UPDATE audit_entry SET reason = 'x' WHERE id = 2", ""])
    def test_a_failed_scheduled_check_is_reported(
        self, portal_service: Sandbox, viewer: Browser, attack: str
    ) -> None:
        append_five_entries()
        assert "audit trail" not in page(viewer, "/")
        guard.remove_triggers(connection)
        if attack:
            databases.run(attack)
            guard.install_triggers(connection)
        assert run_scheduled_check() == Job.State.FAILED
        assert "The audit trail failed its check" in page(viewer, "/")
        reason = "Entry 2 was altered" if attack else "the trigger audit_entry_"
        assert any(reason in one.words for one in doctor.trail() if one.grade == "bad")

    @pytest.mark.slow
    def test_a_passed_check_clears_the_warning(self, portal_service: Sandbox, viewer: Browser) -> None:
        guard.remove_triggers(connection)
        assert run_scheduled_check() == Job.State.FAILED
        guard.install_triggers(connection)
        assert run_scheduled_check() == Job.State.DONE
        assert "audit trail" not in page(viewer, "/")

    def test_an_overdue_check_is_reported(self, portal_service: Sandbox, viewer: Browser) -> None:
        verify_audit()
        with time_machine.travel(timezone.now() + timedelta(days=3)):
            assert "The audit trail was not checked" in page(browser_of(Role.VIEWER), "/")

    def test_the_end_of_the_trail_is_logged_every_hour(self, caplog: pytest.LogCaptureFixture) -> None:
        append_five_entries()
        caplog.set_level(logging.INFO)
        queue.start_scheduled_jobs()
        Job.objects.exclude(name="operations.log_audit_head").delete()  # The others need the service.
        call_command("work", batch=True)
        last = Entry.objects.get(pk=5)
        (line,) = (text for text in caplog.messages if "The audit trail ends with entry" in text)
        number, _, groups = line.removesuffix(".").rpartition(", hash ")
        found = Entry.objects.get(pk=int(number.rpartition(" ")[2]))
        assert groups.replace(":", "") == found.hash
        assert found.pk >= last.pk


def run_scheduled_check() -> str:
    """Run the scheduled check and return the state of its job."""
    kind = find_kind("operations.verify_audit")
    assert kind
    start_job(kind)
    call_command("work", batch=True)
    job = Job.latest(kind.name)
    assert job
    return job.state


def verify_audit() -> str:
    """Return the output of the command, or its error message."""
    output = StringIO()
    try:
        call_command("verify_audit", stdout=output, stderr=StringIO())
    except CommandError as error:
        return str(error)
    return output.getvalue()


def rewrite_entry(first: int, **changes: Any) -> None:
    """Change an entry and recompute its hash."""
    entry = Entry.objects.get(pk=first)
    for name, value in changes.items():
        setattr(entry, name, value)
    names = ("reason", "previous_hash")
    values = ", ".join(f"{name} = '{getattr(entry, name)}'" for name in names)
    run(f"UPDATE audit_entry SET {values}, hash = '{entry_hash(entry)}' WHERE id = {first}")


# An entry and its hash from before entries had a format.
FORMAT_1_ENTRY = {
    "at": datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
    "actor_id": 7,
    "actor_name": "Maya Chen",
    "actor_role": "servicer",
    "ip": "2001:db8::1",
    "user_agent": "Mozilla/5.0",
    "request_id": "r-1",
    "action": "borrowers.update",
    "phase": "attempt",
    "intent_id": UUID(int=5),
    "subject_kind": "borrower",
    "subject_uuid": "b-1",
    "subject_label": "Ærø & Søn LLC",
    "borrower_uuid": "b-1",
    "reason": "Moved",
    "changes": {"city": ["Austin", "Waco"]},
    "detail": {"amount": "12.50", "list": [1, None]},
    "previous_hash": GENESIS_HASH,
    "hash": "cfe5add73e3dd56ee0c8c18ceb1726f47d868b320b452b0049e086d9304bf840",
}


@pytest.mark.django_db(transaction=True)
class TestFormats:
    @pytest.fixture(autouse=True)
    def two_formats(self) -> None:
        """Add an entry in the first format, then one in the current format."""
        Entry(id=1, hash_format=1, **FORMAT_1_ENTRY).save(force_insert=True)
        append(MAYA, "lookup.correct", reason="Another")

    def test_both_formats_verify_in_one_chain(self) -> None:
        assert list(Entry.objects.order_by("id").values_list("hash_format", flat=True)) == [1, HASH_FORMAT]
        assert (verify_chain().entries, verify_chain().found) == (2, None)
        assert all(is_intact(entry) for entry in Entry.objects.all())

    @pytest.mark.parametrize(
        ("change", "named"),
        [
            ("hash_format = 1 WHERE id = 2", "Entry 2 was altered"),
            ("hash_format = 2 WHERE id = 1", "Entry 1 was altered"),
            ("reason = 'Another' WHERE id = 1", "Entry 1 was altered"),
            ("hash_format = 99 WHERE id = 2", "Entry 2 has hash format 99, which this version does"),
        ],
    )
    def test_changed_fields_and_formats_are_reported(self, change: str, named: str) -> None:
        guard.remove_triggers(connection)
        run(f"UPDATE audit_entry SET {change}")
        assert str(verify_chain().found).startswith(named)
        assert not all(is_intact(entry) for entry in Entry.objects.all())

    def test_the_newest_format_covers_every_field_but_the_form_of_a_post(self) -> None:
        fields = {field.attname for field in Entry._meta.concrete_fields}
        assert set(HASHED_FIELDS[HASH_FORMAT]) == fields - {"id", "hash", "save_id"}


APPENDS = """
import threading, django
django.setup()
from django.db import connection
from portal.audit.chain import Actor, append

def work():
    for _ in range(10):
        append(Actor.system("trial"), "lookup.add")
    connection.close()

threads = [threading.Thread(target=work) for _ in range(3)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_concurrent_processes_append_to_one_chain() -> None:
    environment = os.environ | {"DATABASE_URL": databases.database_url()}
    processes = [subprocess.Popen([sys.executable, "-c", APPENDS], env=environment) for _ in range(3)]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    assert (verify_chain().entries, verify_chain().found) == (90, None)


def rights_of(role: str) -> set[tuple[str, str]]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname, relacl::text FROM pg_class WHERE relacl::text LIKE %s", [f"%{role}=%"]
        )
        return set(cursor.fetchall())


TAMPERING = [
    "UPDATE audit_entry SET reason = ''",
    "DELETE FROM audit_entry",
    "TRUNCATE audit_entry CASCADE",
    "ALTER TABLE audit_entry DISABLE TRIGGER ALL",
    "DROP TRIGGER audit_entry_no_change ON audit_entry",
    "DROP TABLE audit_entry CASCADE",
    "CREATE OR REPLACE FUNCTION audit_entry_refuse() RETURNS trigger LANGUAGE sql AS ''",
    "SET session_replication_role = replica",
]


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has no roles")
@pytest.mark.django_db(transaction=True)
class TestDatabaseRole:
    @pytest.fixture(autouse=True)
    def role(self, tmp_path: Path) -> Iterator[None]:
        """Create a role as the containers do, and run each test in it."""
        name, database = f"web_{os.getpid()}", connection.settings_dict
        files = {"web": tmp_path / "web", "owner": tmp_path / "owner"}
        files["web"].write_text("postgres://{0}:s3cret@{HOST}:{PORT}/{NAME}".format(name, **database))
        files["owner"].write_text(databases.database_url())
        environment = os.environ | {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "WEB_ROLE": name,
            "POSTGRES_USER": database["USER"],
            "POSTGRES_DB": database["NAME"],
            "PGHOST": database["HOST"],
            "PGPORT": str(database["PORT"]),
            "PGPASSWORD": database["PASSWORD"],
        }
        for command, file in ((["docker/web-role.sh"], "web"), (["docker/as-owner.sh", "upgrade"], "owner")):
            command_environment = environment | {"DATABASE_URL_FILE": str(files[file])}
            subprocess.run(["sh", *command], env=command_environment, cwd=project.BASE_DIR, check=True)
        databases.run(f"SET ROLE {name}")
        yield
        databases.run("RESET ROLE", f"DROP OWNED BY {name}", f"DROP ROLE {name}")

    def test_the_portal_works_without_owning_the_trail(self, portal_service: Sandbox) -> None:
        assert browser_of(Role.AUDITOR).get("/admin/audit/entry/").status_code == 200
        assert (verify_chain().found, guard.missing_triggers(connection)) == (None, [])

    def test_the_role_cannot_change_the_trail_or_its_triggers(self) -> None:
        append_five_entries()
        for statement in TAMPERING:
            with pytest.raises(ProgrammingError, match=r"denied|must be owner"):
                databases.run(statement)
        assert verify_chain().entries == 5

    def test_a_temporary_table_cannot_replace_the_trail(self) -> None:
        append_five_entries()
        databases.run(f"CREATE TEMPORARY TABLE audit_entry AS SELECT 6 AS id, '{'a' * 64}' AS hash")
        with pytest.raises(IntegrityError, match="follow the last one"):
            databases.run(
                f"INSERT INTO public.audit_entry (id, {COLUMNS}) SELECT 7, {STRANGE} FROM public.audit_entry LIMIT 1"
            )
        databases.run("DROP TABLE pg_temp.audit_entry")

    def test_the_doctor_names_what_grants_rights(self, anonymous: Browser) -> None:
        name = f"web_{os.getpid()}"
        databases.run(
            "RESET ROLE", f"REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {name}", f"SET ROLE {name}"
        )
        (found,) = doctor.database()
        assert found.words.startswith("The database can’t be read. ")
        assert "docker/audit-roles.sql" in found.words
        assert anonymous.get("/readyz").status_code == 503
        databases.run(
            "RESET ROLE", f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {name}", f"SET ROLE {name}"
        )
        (found,) = doctor.database()
        assert found.words.startswith("The database can’t be written to. ")
        assert "docker/audit-roles.sql" in found.words
