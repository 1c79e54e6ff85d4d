"""The trail under attack by plain SQL: refused by the database, and found where the database was made to allow it."""

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.conf import settings as project
from django.core.management import CommandError, call_command
from django.db import IntegrityError, ProgrammingError, connection, transaction
from django.test import Client as Browser

from portal.accounts.roles import Role
from portal.audit import checkpoints, guard
from portal.audit.chain import append, seal
from portal.audit.guard import FIRST
from portal.audit.models import Actor, Entry
from portal.audit.verification import verify
from portal.operations import doctor
from portal.registry.models import Kind, Record
from portal.registry.search import matching, search_text
from servicing.sandbox import Sandbox
from tests import databases
from tests.conftest import browser_of

MAYA = Actor(id=7, name="Maya Chen", role="servicer", ip="2001:db8::1", request_id="r-1")
COLUMNS = ", ".join(field.column for field in Entry._meta.concrete_fields if field.column != "id")
STRANGE = COLUMNS.replace("previous_hash, hash", f"'{'a' * 64}', '{'b' * 64}'")
FOLLOWS = COLUMNS.replace("previous_hash, hash", f"hash, '{'b' * 64}'")


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
        assert verify().found is None

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
        guard.remove(connection)
        assert len(guard.missing(connection)) == 3
        call_command("migrate", verbosity=0)
        assert guard.missing(connection) == []


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
        guard.remove(connection)
        run(*attack)
        assert named in told()

    def test_a_millionth_of_a_second_counts(self) -> None:
        entry = five()[0]
        guard.remove(connection)
        moved = entry.at.replace(microsecond=(entry.at.microsecond + 1) % 1_000_000)
        with connection.cursor() as cursor:
            cursor.execute("UPDATE audit_entry SET at = %s WHERE id = 1", [moved])
        assert "Entry 1 was altered" in told()

    def test_an_entry_that_was_sealed_anew_is_named_though_it_fits_its_seal(self) -> None:
        five()
        guard.remove(connection)
        reseal(3, reason="Another")
        assert "Entry 3 was rewritten, seal and all" in told()

    def test_an_entry_slipped_in_with_a_true_seal_is_named(self) -> None:
        five()
        guard.remove(connection)
        run(*MAKE_ROOM)
        forged = Entry.objects.get(pk=2)
        forged.pk, forged.previous_hash, forged.reason = 3, "c" * 64, "Slipped in"
        forged.hash = seal(forged)
        forged.save()
        assert "Entry 3 was inserted: it follows no entry" in told()

    def test_a_missing_guard_is_said(self) -> None:
        guard.remove(connection)
        errors = StringIO()
        call_command("verify_audit", stdout=StringIO(), stderr=errors)
        assert (
            errors.getvalue().count("is missing or may be passed by; manage.py upgrade makes it again.") == 3
        )

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
    run(f"UPDATE audit_entry SET {values}, hash = '{seal(entry)}' WHERE id = {first}")


@pytest.mark.django_db
class TestCheckpoints:
    @pytest.fixture
    def kept(self, settings: LazySettings, tmp_path: Path) -> Path:
        """Five entries and a signed checkpoint of them."""
        settings.AUDIT_CHECKPOINT_KEY, settings.AUDIT_CHECKPOINT_FORMER_KEYS = checkpoints.new_key()[0], []
        five()
        call_command("verify_audit", path=tmp_path / "kept.jsonl", sign=True, stdout=StringIO())
        return tmp_path / "kept.jsonl"

    def check(self, kept: Path) -> None:
        call_command("verify_audit", path=kept, stdout=StringIO(), stderr=StringIO())

    def test_a_chain_that_was_rewritten_whole_is_found(self, kept: Path) -> None:
        self.check(kept)
        guard.remove(connection)
        previous = FIRST
        for number in Entry.objects.order_by("id").values_list("id", flat=True):
            reseal(number, previous_hash=previous, reason="Rewritten")
            previous = Entry.objects.get(pk=number).hash
        assert verify().found is None
        with pytest.raises(CommandError, match="Entry 5 or one before it was rewritten: the checkpoint"):
            self.check(kept)

    def test_an_end_that_was_cut_off_is_found(self, kept: Path) -> None:
        guard.remove(connection)
        run("DELETE FROM audit_entry WHERE id > 4")
        assert verify().found is None
        with pytest.raises(CommandError, match="Entry 5 was removed: the checkpoint"):
            self.check(kept)

    @pytest.mark.parametrize(
        ("old", "new", "reason"),
        [
            ('"entry": 5', '"entry": 4', "the signature does not fit"),
            ('"key": "', '"key": "0', "no key here has the name it gives"),
            ('"hash"', '"hush"', "it cannot be read|no key"),
            ("{", "", "it cannot be read"),
        ],
    )
    def test_a_forged_line_is_refused(self, kept: Path, old: str, new: str, reason: str) -> None:
        kept.write_text(kept.read_text().replace(old, new))
        with pytest.raises(CommandError, match=reason):
            self.check(kept)

    def test_the_key_is_replaced_and_older_checkpoints_stay_valid(
        self, kept: Path, settings: LazySettings
    ) -> None:
        words = StringIO()
        call_command("verify_audit", new_key=True, stdout=words)
        first, second = settings.AUDIT_CHECKPOINT_KEY, words.getvalue().split("KEY=")[1].split()[0]
        settings.AUDIT_CHECKPOINT_KEY = second
        with pytest.raises(CommandError, match="no key here has the name"):
            self.check(kept)
        settings.AUDIT_CHECKPOINT_FORMER_KEYS = [checkpoints.public_half(first)]
        call_command("verify_audit", path=kept, sign=True, stdout=StringIO())
        self.check(kept)
        assert len(kept.read_text().splitlines()) == 2

    @pytest.mark.parametrize(
        ("key", "former", "reason"),
        [("", [], "is not set"), ("AAAA", [], "no Ed25519 key"), ("?", [], "no Ed25519 key")],
    )
    def test_a_key_that_cannot_be_used_is_said(
        self, settings: LazySettings, tmp_path: Path, key: str, former: list[str], reason: str
    ) -> None:
        settings.AUDIT_CHECKPOINT_KEY, settings.AUDIT_CHECKPOINT_FORMER_KEYS = key, former
        with pytest.raises(CommandError, match=reason):
            call_command("verify_audit", path=tmp_path / "kept.jsonl", sign=True, stdout=StringIO())

    def test_signing_needs_a_file(self) -> None:
        with pytest.raises(CommandError, match="needs --checkpoints FILE"):
            call_command("verify_audit", sign=True)


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
    assert (verify().entries, verify().found) == (90, None)


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

    def test_it_can_work_and_nothing_weakens_the_guard(self, desk: Sandbox) -> None:
        assert browser_of(Role.AUDITOR).get("/audit/").status_code == 200
        assert (verify().found, guard.weaknesses(connection)) == (None, [])

    def test_it_cannot_change_the_trail_nor_take_its_guard_away(self) -> None:
        five()
        for statement in TAKING_AWAY:
            with pytest.raises(ProgrammingError, match=r"denied|must be owner"):
                databases.run(statement)
        assert verify().entries == 5

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
            "The database answers, but this role may not read registry_search_loan. "
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
        assert found.words.startswith("The database answers, but this role may not read ")
        assert found.words.endswith(" other tables. Run docker/audit-roles.sql as the owner.")
        answer = anonymous.get("/readyz")
        assert (answer.status_code, answer.content) == (503, b"database: this role lacks rights\n")
        databases.run(
            "RESET ROLE", f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {name}", f"SET ROLE {name}"
        )
        (found,) = doctor.database()
        assert found.words.startswith(
            "The database cannot be written to. Run docker/audit-roles.sql as the owner."
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
            "CommandError: This role may not change the tables. "
            "Put the address of the role that owns them into DATABASE_URL.\n"
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
        assert "run docker/audit-roles.sql for it." in out.getvalue()

    def test_what_the_search_keeps_for_it_as_the_owner_goes_nowhere_else(self) -> None:
        databases.run(
            "CREATE TEMPORARY TABLE registry_search_borrower (rowid bigint PRIMARY KEY, search_text text)"
        )
        Record.objects.create(kind=Kind.BORROWER, uuid="r-1", label="Acme", search_text=search_text("Acme"))
        databases.run("DROP TABLE pg_temp.registry_search_borrower")
        assert matching(Record.objects.all(), "acme").count() == 1
