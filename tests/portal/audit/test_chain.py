"""The trail under attack by plain SQL: refused by the database, and found where the database was made to allow it."""

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.conf import settings as project
from django.core.management import CommandError, call_command
from django.db import IntegrityError, ProgrammingError, connection, transaction
from django.test import Client as Browser

from portal.accounts.roles import Role
from portal.audit import guard
from portal.audit.chain import HASH_FORMAT, HASHED_FIELDS, append, entry_hash
from portal.audit.guard import GENESIS_HASH
from portal.audit.integrity import is_intact, verify_chain
from portal.audit.models import Actor, Entry
from portal.operations import doctor
from portal.registry.models import Kind, Record
from portal.registry.search.find import filter_by_text
from portal.registry.search.texts import search_text
from servicing.sandbox import Sandbox
from tests import databases
from tests.conftest import browser_of

MAYA = Actor(id=7, name="Maya Chen", role="servicer", ip="2001:db8::1", request_id="r-1")
COLUMNS = ", ".join(field.column for field in Entry._meta.concrete_fields if field.column != "id")
STRANGE = COLUMNS.replace("previous_hash, hash,", f"'{'a' * 64}', '{'b' * 64}',")
FOLLOWS = COLUMNS.replace("previous_hash, hash,", f"hash, '{'b' * 64}',")


def run(*statements: str) -> None:
    with transaction.atomic():
        databases.run(*statements)


def five() -> list[Entry]:
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
        five()
        with pytest.raises(IntegrityError, match="Audit entries"):
            run(statement)
        assert verify_chain().found is None

    @pytest.mark.skipif(connection.vendor != "sqlite", reason="SQLite’s own way")
    @pytest.mark.parametrize(
        ("number", "name"), [(2, "'x'"), (6, "(SELECT hash FROM audit_entry WHERE id = 3)")]
    )
    def test_nothing_is_replaced_even_where_no_delete_is_seen(self, number: int, name: str) -> None:
        five()
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
    def test_neither_emptying_nor_replication_gets_round_it(self, statements: list[str]) -> None:
        five()
        with pytest.raises(IntegrityError, match="append-only"):
            run(*statements)

    @pytest.mark.skipif(connection.vendor != "sqlite", reason="a file that anybody can open")
    @pytest.mark.django_db(transaction=True)
    def test_another_program_that_opens_the_file_is_refused_too(self) -> None:
        five()
        other = sqlite3.connect(connection.settings_dict["NAME"])
        for statement in ("DELETE FROM audit_entry", "UPDATE audit_entry SET reason = ''"):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                other.execute(statement)
        other.close()

    def test_a_migration_brings_a_lost_guard_back(self) -> None:
        guard.remove_triggers(connection)
        assert len(guard.find_differences(connection)) == 3
        call_command("migrate", verbosity=0)
        assert guard.find_differences(connection) == []


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
    def test_the_first_wrong_entry_is_named(self, attack: list[str], named: str) -> None:
        five()
        if attack:
            guard.remove_triggers(connection)
        run(*attack)
        assert named in told()

    def test_a_millionth_of_a_second_counts(self) -> None:
        entry = five()[0]
        guard.remove_triggers(connection)
        moved = entry.at.replace(microsecond=(entry.at.microsecond + 1) % 1_000_000)
        with connection.cursor() as cursor:
            cursor.execute("UPDATE audit_entry SET at = %s WHERE id = 1", [moved])
        assert "Entry 1 was altered" in told()

    def test_an_entry_that_was_sealed_anew_is_named_though_it_fits_its_seal(self) -> None:
        five()
        guard.remove_triggers(connection)
        reseal(3, reason="Another")
        assert "Entry 3 was rewritten with its hash" in told()

    def test_an_entry_slipped_in_with_a_true_seal_is_named(self) -> None:
        five()
        guard.remove_triggers(connection)
        run(*MAKE_ROOM)
        forged = Entry.objects.get(pk=2)
        forged.pk, forged.previous_hash, forged.reason = 3, "c" * 64, "Slipped in"
        forged.hash = entry_hash(forged)
        forged.save()
        assert "Entry 3 was inserted: no entry precedes it" in told()

    def test_the_check_is_an_entry_itself(self) -> None:
        five()
        told()
        entry = Entry.objects.get(action="audit.verify")
        assert (entry.result, entry.actor_role, entry.detail["entries"]) == ("unbroken", "system", 5)


def told() -> str:
    """What the command says, well or not."""
    words = StringIO()
    try:
        call_command("verify_audit", stdout=words, stderr=StringIO())
    except CommandError as error:
        return str(error)
    return words.getvalue()


def reseal(first: int, **changes: Any) -> None:
    """Rewrite an entry with a seal that fits."""
    entry = Entry.objects.get(pk=first)
    for name, value in changes.items():
        setattr(entry, name, value)
    names = ("reason", "previous_hash")
    values = ", ".join(f"{name} = '{getattr(entry, name)}'" for name in names)
    run(f"UPDATE audit_entry SET {values}, hash = '{entry_hash(entry)}' WHERE id = {first}")


# An entry as it was written, and its hash as it was computed, before entries named a format.
WRITTEN_BEFORE = {
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
        """An entry of the first format, and one of today behind it."""
        Entry(id=1, hash_format=1, **WRITTEN_BEFORE).save(force_insert=True)
        append(MAYA, "lookup.correct", reason="Another")

    def test_entries_of_both_hold_in_one_chain(self) -> None:
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
    def test_neither_a_field_nor_the_format_changes_unnoticed(self, change: str, named: str) -> None:
        guard.remove_triggers(connection)
        run(f"UPDATE audit_entry SET {change}")
        assert str(verify_chain().found).startswith(named)
        assert not all(is_intact(entry) for entry in Entry.objects.all())

    def test_the_newest_format_covers_every_field(self) -> None:
        fields = {field.attname for field in Entry._meta.concrete_fields}
        assert set(HASHED_FIELDS[HASH_FORMAT]) == fields - {"id", "hash"}


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


@pytest.mark.django_db(transaction=True)
def test_many_processes_at_once_make_one_chain() -> None:
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


TAKING_AWAY = [
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
class TestRoleOfThePortal:
    @pytest.fixture(autouse=True)
    def role(self, tmp_path: Path) -> Iterator[None]:
        """A role as the containers make it, in which everything from here on is done."""
        name, told = f"web_{os.getpid()}", connection.settings_dict
        files = {"web": tmp_path / "web", "owner": tmp_path / "owner"}
        files["web"].write_text("postgres://{0}:s3cret@{HOST}:{PORT}/{NAME}".format(name, **told))
        files["owner"].write_text(databases.database_url())
        environment = os.environ | {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "WEB_ROLE": name,
            "POSTGRES_USER": told["USER"],
            "POSTGRES_DB": told["NAME"],
            "PGHOST": told["HOST"],
            "PGPORT": str(told["PORT"]),
            "PGPASSWORD": told["PASSWORD"],
        }
        for command, file in ((["docker/web-role.sh"], "web"), (["docker/as-owner.sh", "upgrade"], "owner")):
            told_by_file = environment | {"DATABASE_URL_FILE": str(files[file])}
            subprocess.run(["sh", *command], env=told_by_file, cwd=project.BASE_DIR, check=True)
        databases.run(f"SET ROLE {name}")
        yield
        databases.run("RESET ROLE", f"DROP OWNED BY {name}", f"DROP ROLE {name}")

    def test_it_can_work_and_nothing_weakens_the_guard(self, portal_service: Sandbox) -> None:
        assert browser_of(Role.AUDITOR).get("/audit/").status_code == 200
        assert (
            verify_chain().found,
            guard.owns_audit_table(connection),
            guard.find_differences(connection),
        ) == (
            None,
            False,
            [],
        )

    def test_it_cannot_change_the_trail_nor_take_its_guard_away(self) -> None:
        five()
        for statement in TAKING_AWAY:
            with pytest.raises(ProgrammingError, match=r"denied|must be owner"):
                databases.run(statement)
        assert verify_chain().entries == 5

    def test_no_table_of_its_own_stands_in_for_the_trail(self) -> None:
        five()
        databases.run(f"CREATE TEMPORARY TABLE audit_entry AS SELECT 6 AS id, '{'a' * 64}' AS hash")
        with pytest.raises(IntegrityError, match="follow the last one"):
            databases.run(
                f"INSERT INTO public.audit_entry (id, {COLUMNS}) SELECT 7, {STRANGE} FROM public.audit_entry LIMIT 1"
            )
        databases.run("DROP TABLE pg_temp.audit_entry")

    def test_the_doctor_names_what_it_was_not_granted_since_a_migration(self) -> None:
        name = f"web_{os.getpid()}"
        databases.run("RESET ROLE", f"REVOKE SELECT ON registry_search_loan FROM {name}", f"SET ROLE {name}")
        (found,) = doctor.database()
        assert found.words == (
            "The database responds, but this role can’t read registry_search_loan. "
            "Run docker/audit-roles.sql as the owner."
        )

    def test_a_role_without_any_right_is_not_taken_for_a_database_that_is_away(
        self, anonymous: Browser
    ) -> None:
        name = f"web_{os.getpid()}"
        databases.run(
            "RESET ROLE", f"REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {name}", f"SET ROLE {name}"
        )
        (found,) = doctor.database()
        assert found.words.startswith("The database responds, but this role can’t read ")
        assert found.words.endswith(" other tables. Run docker/audit-roles.sql as the owner.")
        answer = anonymous.get("/readyz")
        assert (answer.status_code, answer.content) == (503, b"database: this role lacks rights\n")
        databases.run(
            "RESET ROLE", f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {name}", f"SET ROLE {name}"
        )
        (found,) = doctor.database()
        assert found.words.startswith(
            "The database can’t be written to. Run docker/audit-roles.sql as the owner."
        )

    @pytest.mark.parametrize(
        "words",
        [["upgrade", "--verbosity", "0"], ["restore", "manage.py", "--replace"]],
        ids=lambda words: words[0],
    )
    def test_what_only_the_owner_can_do_says_so(self, words: list[str], tmp_path: Path) -> None:
        databases.run("RESET ROLE", "DELETE FROM django_migrations WHERE app = 'notes'")
        command, address = [sys.executable, "manage.py", *words], (tmp_path / "web").read_text()
        environment = os.environ | {"DATABASE_URL": address}
        done = subprocess.run(
            command, env=environment, cwd=project.BASE_DIR, capture_output=True, text=True, timeout=60
        )
        call_command("migrate", "notes", fake=True, verbosity=0)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == (
            "CommandError: This role can’t change the tables. Set DATABASE_URL to the role that owns them.\n"
        )

    def test_it_keeps_what_it_may_do_when_the_owner_restores(self, tmp_path: Path) -> None:
        if not shutil.which("pg_dump"):
            pytest.skip("pg_dump is not installed")
        name, out = f"web_{os.getpid()}", StringIO()
        databases.run("RESET ROLE")
        before = rights_of(name)
        call_command("backup", tmp_path / "copy", stdout=out)
        call_command("restore", tmp_path / "copy", replace=True, stdout=out)
        assert rights_of(name) == before
        assert "audit-roles" not in out.getvalue()
        # As in a new database, where nobody was granted anything.
        databases.run(f"DROP OWNED BY {name}")
        call_command("restore", tmp_path / "copy", replace=True, stdout=out)
        assert "run docker/audit-roles.sql for that role." in out.getvalue()

    def test_what_the_search_keeps_for_it_as_the_owner_goes_nowhere_else(self) -> None:
        databases.run(
            "CREATE TEMPORARY TABLE registry_search_borrower (rowid bigint PRIMARY KEY, search_text text)"
        )
        Record.objects.create(kind=Kind.BORROWER, uuid="r-1", label="Acme", search_text=search_text("Acme"))
        databases.run("DROP TABLE pg_temp.registry_search_borrower")
        assert filter_by_text(Record.objects.all(), "acme").count() == 1
