"""Signed checkpoints: tampering fails the check and is reported, and restores are accepted on record."""

import os
import pwd
import shutil
from collections.abc import Callable
from datetime import timedelta
from html import unescape
from io import StringIO
from pathlib import Path
from uuid import UUID

import pytest
import time_machine
from django.conf import LazySettings
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection
from django.test import Client as Browser
from django.utils import timezone

from portal.accounts.roles import Role
from portal.audit import checkpoints, guard
from portal.audit.chain import append
from portal.audit.guard import GENESIS_HASH
from portal.audit.integrity import verify_chain
from portal.audit.models import Entry
from portal.jobs import kinds, queue
from portal.jobs.models import Job
from portal.jobs.queue import start_job
from portal.operations import doctor
from servicing.sandbox import Sandbox
from tests import databases
from tests.conftest import browser_of
from tests.portal.audit.test_chain import MAYA, append_five_entries, rewrite_entry, run
from tests.portal.borrowers.wizard import Wizard


def check(**options: object) -> str:
    """Return the output of the command; a failed check raises CommandError."""
    output = StringIO()
    call_command("verify_audit", stdout=output, stderr=StringIO(), **options)
    return output.getvalue()


def failure(**options: object) -> str:
    """Return the error message of the command, which must fail."""
    with pytest.raises(CommandError) as failed:
        check(**options)
    return str(failed.value)


def checkpoint_file(settings: LazySettings) -> Path:
    return Path(settings.AUDIT_CHECKPOINT_DIR) / "checkpoints.jsonl"


def tamper(*statements: str) -> None:
    """Run statements as the database's owner can: without the triggers, which are then restored."""
    guard.remove_triggers(connection)
    run(*statements)
    restore_triggers()


def restore_triggers() -> None:
    if connection.vendor == "postgresql":  # Pending foreign key checks prevent new triggers.
        databases.run("SET CONSTRAINTS ALL IMMEDIATE", "SET CONSTRAINTS ALL DEFERRED")
    guard.install_triggers(connection)


def rewrite_chain() -> None:
    """Change every entry and recompute all hashes, so that the chain is consistent."""
    guard.remove_triggers(connection)
    previous = GENESIS_HASH
    for number in Entry.objects.order_by("id").values_list("id", flat=True):
        rewrite_entry(number, previous_hash=previous, reason="Rewritten")
        previous = Entry.objects.get(pk=number).hash
    restore_triggers()


@pytest.fixture
def signed_file(db: None, settings: LazySettings) -> Path:
    """Add five entries, then check and sign them: entry 6 is the check, entry 7 the checkpoint."""
    append_five_entries()
    assert check() == "5 entries, one unbroken chain.\nSigned: entry 7 is the last one.\n"
    return checkpoint_file(settings)


class TestTampering:
    @pytest.mark.parametrize("recent", [False, True])
    @pytest.mark.parametrize("left", [6, 2, 0], ids=["last entry cut", "tail cut", "emptied"])
    def test_a_truncated_trail_is_found(self, signed_file: Path, left: int, recent: bool) -> None:
        tamper(f"DELETE FROM audit_entry WHERE id > {left}")
        assert verify_chain().found is None
        assert failure(recent=recent).startswith("Entry 7 was removed: the checkpoint of ")
        append(MAYA, "lookup.correct")
        assert "Entry 7 was removed" in failure() or "Entry 7 or one before it was rewritten" in failure()

    @pytest.mark.parametrize("recent", [False, True])
    def test_a_trail_truncated_to_an_earlier_checkpoint_is_found(
        self, signed_file: Path, recent: bool
    ) -> None:
        append(MAYA, "lookup.correct")
        check(recent=True)
        tamper("DELETE FROM audit_entry WHERE id > 7")
        words = "The trail ends before its last checkpoint. Run manage.py verify_audit."
        assert words in [one.words for one in doctor.trail() if one.grade == "bad"]
        assert failure(recent=recent).startswith("Entry 9 was removed: the checkpoint of ")

    @pytest.mark.parametrize("recent", [False, True])
    def test_a_rewritten_chain_is_found(self, signed_file: Path, recent: bool) -> None:
        rewrite_chain()
        assert verify_chain().found is None
        assert failure(recent=recent).startswith("Entry 7 or one before it was rewritten: the checkpoint of ")

    @pytest.mark.parametrize("recent", [False, True])
    @pytest.mark.parametrize("loss", ["missing", "empty", "shortened", "older"])
    def test_missing_checkpoint_lines_are_found(self, signed_file: Path, loss: str, recent: bool) -> None:
        older = signed_file.read_text()
        append(MAYA, "lookup.correct")
        check(recent=True)
        lines = signed_file.read_text().splitlines(keepends=True)
        assert len(lines) == 2
        signed_file.unlink()
        if loss != "missing":
            signed_file.write_text(
                {"empty": "", "shortened": lines[1] if not recent else lines[0], "older": older}[loss]
            )
        if recent or loss != "shortened":  # Only a full check notices a missing earlier line.
            (bad,) = [one.words for one in doctor.trail() if one.grade == "bad"]
            assert bad.startswith("The trail was signed, but the checkpoint file is missing")
        assert "was signed, but the checkpoint file is missing, truncated" in failure(recent=recent)

    def test_new_entries_are_checked_before_signing(self, signed_file: Path) -> None:
        append(MAYA, "lookup.correct", reason="True")
        tamper("UPDATE audit_entry SET reason = 'False' WHERE id = 8")
        assert "Entry 8 was altered" in failure(recent=True)
        assert "Not signed, because the last check failed. Entry 8 was altered" in failure(recent=True)
        assert len(signed_file.read_text().splitlines()) == 1

    @pytest.mark.parametrize("has_entry", [False, True])
    def test_an_interrupted_signing_passes_the_check(self, signed_file: Path, has_entry: bool) -> None:
        """Signing writes the file before and after its entry, and may stop after either of the first two."""
        entry = append(MAYA, "lookup.correct")
        databases.reject_inserts("audit_entry")
        with pytest.raises(DatabaseError):
            checkpoints.sign_checkpoint(entry)
        databases.allow_inserts("audit_entry")
        if has_entry:
            first_step = signed_file.read_text()
            checkpoints.sign_checkpoint(entry)
            signed_file.write_text(first_step)
        assert "one unbroken chain" in check()

    def test_an_unchanged_trail_is_not_signed_again(self, signed_file: Path) -> None:
        assert check(recent=True) == "Nothing new to sign.\n"
        assert Entry.objects.count() == 7

    def test_only_the_owner_can_read_checkpoints(self, signed_file: Path) -> None:
        assert signed_file.parent.stat().st_mode & 0o777 == 0o700
        assert {one.name for one in signed_file.parent.iterdir()} == {"checkpoints.jsonl", "key"}
        assert {one.stat().st_mode & 0o777 for one in signed_file.parent.iterdir()} == {0o600}

    def test_a_check_requires_the_checkpoint_folder(self, signed_file: Path, settings: LazySettings) -> None:
        settings.AUDIT_CHECKPOINT_DIR = ""
        assert failure() == "AUDIT_CHECKPOINT_DIR is empty here. Run this where the worker runs."
        assert Entry.objects.count() == 7


NEUTERED = {
    "sqlite": {
        "a trigger that does nothing": [
            "DROP TRIGGER audit_entry_no_update",
            "CREATE TRIGGER audit_entry_no_update BEFORE UPDATE ON audit_entry BEGIN SELECT 1; END",
        ],
        "a trigger that never fires": [
            "DROP TRIGGER audit_entry_no_delete",
            "CREATE TRIGGER audit_entry_no_delete BEFORE DELETE ON audit_entry WHEN 0 "
            "BEGIN SELECT RAISE(ABORT, 'Audit entries are append-only.'); END",
        ],
        "a trigger that is missing": ["DROP TRIGGER audit_entry_in_order"],
        "a trigger of others": ["CREATE TRIGGER others AFTER INSERT ON audit_entry BEGIN SELECT 1; END"],
    },
    "postgresql": {
        "a function that does nothing": [
            "CREATE OR REPLACE FUNCTION audit_entry_refuse() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RETURN new; END $$"
        ],
        "a trigger with a function of others": [
            "CREATE FUNCTION pass_by() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN new; END $$",
            "CREATE OR REPLACE TRIGGER audit_entry_no_change BEFORE UPDATE OR DELETE ON audit_entry "
            "FOR EACH ROW EXECUTE FUNCTION pass_by()",
            "ALTER TABLE audit_entry ENABLE ALWAYS TRIGGER audit_entry_no_change",
        ],
        "a trigger that never fires": [
            "CREATE OR REPLACE TRIGGER audit_entry_in_order BEFORE INSERT ON audit_entry "
            "FOR EACH ROW WHEN (false) EXECUTE FUNCTION audit_entry_follow()",
            "ALTER TABLE audit_entry ENABLE ALWAYS TRIGGER audit_entry_in_order",
        ],
        "a trigger of one column": [
            "CREATE OR REPLACE TRIGGER audit_entry_no_change BEFORE UPDATE OF ip OR DELETE ON audit_entry "
            "FOR EACH ROW EXECUTE FUNCTION audit_entry_refuse()",
            "ALTER TABLE audit_entry ENABLE ALWAYS TRIGGER audit_entry_no_change",
        ],
        "a trigger that is passed by": ["ALTER TABLE audit_entry ENABLE TRIGGER audit_entry_no_truncate"],
        "a trigger that is off": ["ALTER TABLE audit_entry DISABLE TRIGGER audit_entry_no_change"],
        "a trigger that is missing": ["DROP TRIGGER audit_entry_in_order ON audit_entry"],
        "a rule": ["CREATE RULE skip AS ON UPDATE TO audit_entry DO INSTEAD NOTHING"],
        "rows of a child table": ["CREATE TABLE more () INHERITS (audit_entry)"],
        "rows that are hidden": ["ALTER TABLE audit_entry ENABLE ROW LEVEL SECURITY"],
    },
}


# The database silently drops the entry of a failed check.
SILENCED = {
    "sqlite": [
        "CREATE TRIGGER quiet BEFORE INSERT ON audit_entry WHEN new.result = 'broken' BEGIN SELECT RAISE(IGNORE); END"
    ],
    "postgresql": [
        "CREATE FUNCTION drop_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$",
        "CREATE TRIGGER quiet BEFORE INSERT ON audit_entry FOR EACH ROW WHEN (new.result = 'broken') "
        "EXECUTE FUNCTION drop_row()",
    ],
}


# The database rejects every entry, also that of a failed check.
REFUSING = {
    "sqlite": ["CREATE TRIGGER refuse BEFORE INSERT ON audit_entry BEGIN SELECT RAISE(ABORT, 'No'); END"],
    "postgresql": [
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'No'; END $$",
        "CREATE TRIGGER refuse BEFORE INSERT ON audit_entry FOR EACH ROW EXECUTE FUNCTION refuse()",
    ],
}


REPLACED = {
    "sqlite": [
        "ALTER TABLE audit_entry RENAME TO real_entry",
        "CREATE VIEW audit_entry AS SELECT * FROM real_entry",
        "CREATE TRIGGER swallow INSTEAD OF INSERT ON audit_entry BEGIN SELECT 1; END",
    ],
    "postgresql": [
        "ALTER TABLE audit_entry RENAME TO real_entry",
        "CREATE VIEW audit_entry AS SELECT * FROM real_entry",
        "CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN new; END $$",
        "CREATE TRIGGER swallow INSTEAD OF INSERT ON audit_entry FOR EACH ROW EXECUTE FUNCTION swallow()",
    ],
}


def replace_folder_with_file(signed_file: Path) -> None:
    shutil.rmtree(signed_file.parent)
    signed_file.parent.write_text("")


ATTACKS: dict[str, Callable[[Path], object]] = {
    "tail cut": lambda signed_file: tamper("DELETE FROM audit_entry WHERE id > 5"),
    "emptied trail": lambda signed_file: tamper("DELETE FROM audit_entry"),
    "rewritten chain": lambda signed_file: rewrite_chain(),
    "missing checkpoint file": lambda signed_file: signed_file.unlink(),
    "shortened checkpoint file": lambda signed_file: signed_file.write_text(""),
    "folder of checkpoints replaced by a file": replace_folder_with_file,
    "neutered guard": lambda signed_file: run(*next(iter(NEUTERED[connection.vendor].values()))),
    "silenced trail": lambda signed_file: run(*SILENCED[connection.vendor]),
}


def run_scheduled_check(name: str) -> str:
    """Run a scheduled check and return the state of its job."""
    kind = kinds.find_kind(name)
    assert kind
    start_job(kind)
    call_command("work", batch=True)
    job = Job.latest(name)
    assert job
    return job.state


def metrics(browser: Browser) -> str:
    return browser.get("/metrics", headers={"authorization": "Bearer 0123456789abcdef"}).content.decode()


class TestGuard:
    @pytest.mark.parametrize("recent", [False, True])
    @pytest.mark.parametrize("how", NEUTERED[connection.vendor])
    def test_a_changed_guard_is_found(self, signed_file: Path, how: str, recent: bool) -> None:
        append(MAYA, "lookup.correct")
        run(*NEUTERED[connection.vendor][how])
        assert guard.find_differences(connection)
        reason = failure(recent=recent)
        assert "The trigger audit_entry_" in reason or "which the portal didn’t create" in reason
        assert next(one.words for one in doctor.trail() if one.grade == "bad") in reason

    @pytest.mark.parametrize("recent", [False, True])
    def test_a_trail_that_rejects_entries_is_reported(self, signed_file: Path, recent: bool) -> None:
        run(*REFUSING[connection.vendor])
        assert "The audit table has refuse, which the portal didn’t create." in failure(recent=recent)

    def test_a_view_in_place_of_the_trail_is_not_signed(self, signed_file: Path) -> None:
        lines = signed_file.read_text()
        run(*REPLACED[connection.vendor])
        assert "audit_entry isn't a table; something replaced it" in failure()
        with pytest.raises(checkpoints.UnusableCheckpoints, match="isn’t in the trail"):
            checkpoints.sign_checkpoint(Entry(id=Entry.objects.count() + 1, hash="f" * 64))
        assert signed_file.read_text() == lines

    def test_an_upgrade_repairs_and_records_a_changed_guard(self, signed_file: Path) -> None:
        run(*next(iter(NEUTERED[connection.vendor].values())))
        call_command("migrate", verbosity=0)
        assert "one unbroken chain" in check()
        entry = Entry.objects.get(action="audit.guard")
        assert entry.actor_name.endswith(" (command line)")
        assert "was changed. Run manage.py upgrade" in entry.detail["found"]

    def test_an_upgrade_of_an_intact_guard_is_not_recorded(self, signed_file: Path) -> None:
        call_command("migrate", verbosity=0)
        assert not Entry.objects.filter(action="audit.guard").exists()


class TestOtherTables:
    @pytest.fixture
    def activity(self, portal_service: Sandbox, servicer: Browser) -> None:
        """Create and view a borrower, print a statement, then check and sign the trail."""
        page = Wizard(servicer).fill().send()
        assert page.status_code == 303
        owner = page["Location"]
        assert servicer.get(owner).status_code == 200
        assert servicer.get(f"{owner}statement-of-account.pdf?data=copies").status_code == 200
        assert "one unbroken chain" in check()

    @pytest.mark.parametrize(
        ("attack", "named"),
        [
            (
                ["UPDATE audit_writeintent SET state = 'rejected'"],
                "a request whose state differs from the trail",
            ),
            (["DELETE FROM audit_writeintent"], "an entry of a request that isn’t recorded anywhere else"),
            (["UPDATE summaries_printed SET code = 'another'"], "a row of printed without its entry"),
            (
                ["UPDATE audit_sighting SET subject_uuid = 'another'"],
                "a row of record view without its entry",
            ),
            (
                ["UPDATE audit_remotecall SET intent_id = '{0}' WHERE intent_id IS NOT NULL"],
                "a call to the service whose request isn’t in the trail",
            ),
        ],
    )
    def test_changed_rows_are_found(self, activity: None, attack: list[str], named: str) -> None:
        strange = "0" * 32 if connection.vendor == "sqlite" else str(UUID(int=0))
        run(*(statement.format(strange) for statement in attack))
        assert f"There is {named}" in failure()

    def test_removed_unsigned_entries_are_found(self, portal_service: Sandbox, servicer: Browser) -> None:
        check()
        before = Entry.objects.count()
        assert Wizard(servicer).fill().send().status_code == 303
        assert Entry.objects.filter(pk__gt=before, phase=Entry.Phase.OUTCOME).exists()
        tamper("DELETE FROM audit_sighting", f"DELETE FROM audit_entry WHERE id > {before}")
        words = failure()
        assert "There is a request to the service whose attempt isn’t in the trail" in words
        assert "There is a call to the service whose request isn’t in the trail" in words

    def test_every_related_table_is_compared(self) -> None:
        for relation in Entry._meta.related_objects:
            assert callable(relation.related_model.unrecorded)


class TestReport:
    """A failed check shows on the home page, in the metrics, on the job and in the doctor."""

    @pytest.mark.parametrize("name", ["operations.verify_audit", "operations.sign_audit"])
    @pytest.mark.parametrize("attack", ATTACKS)
    def test_a_failed_scheduled_check_is_reported(
        self, signed_file: Path, viewer: Browser, settings: LazySettings, attack: str, name: str
    ) -> None:
        settings.METRICS_TOKEN = "0123456789abcdef"
        assert "audit trail" not in viewer.get("/").content.decode()
        assert "desk_audit_unbroken 1" in metrics(viewer)
        tamper("DELETE FROM audit_sighting")
        ATTACKS[attack](signed_file)
        assert run_scheduled_check(name) == Job.State.FAILED
        page = unescape(viewer.get("/").content.decode())
        assert "The audit trail failed its check" in page or "The audit trail could not be checked" in page
        assert "desk_audit_unbroken 0" in metrics(viewer)
        assert [one.words for one in doctor.trail() if one.grade == "bad"]

    def test_a_passed_check_clears_the_warning(
        self, signed_file: Path, viewer: Browser, settings: LazySettings
    ) -> None:
        settings.METRICS_TOKEN = "0123456789abcdef"
        append(MAYA, "lookup.correct")
        ATTACKS["folder of checkpoints replaced by a file"](signed_file)
        assert run_scheduled_check("operations.sign_audit") == Job.State.FAILED
        assert "could not be checked" in viewer.get("/").content.decode()
        signed_file.parent.unlink()
        assert "one unbroken chain" in check(reason="The folder was lost")
        assert "audit trail" not in viewer.get("/").content.decode()
        assert "desk_audit_unbroken 1" in metrics(viewer)

    def test_a_broken_trail_fails_signing_only_once(self, signed_file: Path) -> None:
        tamper("DELETE FROM audit_sighting", "DELETE FROM audit_entry WHERE id > 5")
        kind = kinds.find_kind("operations.sign_audit")
        assert kind
        states = []
        for _ in range(3):
            start_job(kind)
            call_command("work", batch=True)
            states.append(Job.latest(kind.name).state)  # type: ignore[union-attr]
        assert states == [Job.State.FAILED, Job.State.DONE, Job.State.DONE]
        assert Entry.objects.filter(action="audit.verify", result="broken").count() == 1
        assert len(signed_file.read_text().splitlines()) == 1
        assert any("Entry 7 was removed" in one.words for one in doctor.trail() if one.grade == "bad")

    def test_unreadable_checkpoints_prevent_signing(self, signed_file: Path, settings: LazySettings) -> None:
        append(MAYA, "lookup.correct")
        signed_file.write_text("{\n")
        assert "line 1: the line can’t be read" in failure(recent=True)
        assert "Not signed, because the last check failed." in failure(recent=True)

    def test_an_overdue_check_is_reported(self, signed_file: Path, viewer: Browser) -> None:
        with time_machine.travel(timezone.now() + timedelta(days=3)):
            assert "The audit trail was not checked" in browser_of(Role.VIEWER).get("/").content.decode()

    def test_the_worker_checks_and_signs_on_schedule(
        self, signed_file: Path, portal_service: Sandbox
    ) -> None:
        queue.start_scheduled_jobs()
        names = set(Job.objects.values_list("name", flat=True))
        assert {"operations.verify_audit", "operations.sign_audit"} <= names
        call_command("work", batch=True)
        assert len(signed_file.read_text().splitlines()) == 2


@pytest.mark.django_db(transaction=True)
class TestRestoring:
    @pytest.fixture
    def newer_file(self, settings: LazySettings, tmp_path: Path) -> Path:
        """Restore an older database after more entries were signed, and return the newer checkpoint file."""
        if connection.vendor == "postgresql" and not shutil.which("pg_dump"):
            pytest.skip("pg_dump is not installed")
        append_five_entries()
        check()
        call_command("backup", tmp_path / "copy", stdout=StringIO())
        append(MAYA, "lookup.correct")
        check()
        words = StringIO()
        call_command("restore", tmp_path / "copy", replace=True, stdout=words)
        assert "manage.py verify_audit --accept REASON" in words.getvalue()
        return checkpoint_file(settings)

    @pytest.mark.parametrize("recent", [False, True])
    def test_an_older_database_fails_the_check(self, newer_file: Path, recent: bool) -> None:
        words = failure(recent=recent)
        assert "was rewritten: the checkpoint of" in words or "was removed: the checkpoint of" in words
        assert words.endswith(
            "If the database was restored on purpose, record that: manage.py verify_audit --accept REASON"
        )
        for _ in range(9):
            append(MAYA, "lookup.correct")
        assert "was rewritten: the checkpoint of" in failure()

    def test_accepting_a_restore_is_recorded(self, newer_file: Path) -> None:
        failure()
        words = check(reason="Disk failed; restored the copy of Sunday")
        assert "Accepted: 1 checkpoint" in words
        assert "one unbroken chain" in words
        entry = Entry.objects.get(action="audit.accept")
        assert (entry.reason, entry.actor_role) == ("Disk failed; restored the copy of Sunday", "system")
        user = pwd.getpwuid(os.getuid()).pw_name
        assert entry.actor_name == f"{user} (command line)"
        assert (entry.detail["keeps"], entry.detail["void"]) == (7, 1)
        append(MAYA, "lookup.correct")
        assert "one unbroken chain" in check()
        assert "Signed" not in check(reason="Again") or "Nothing to accept" in check(reason="Again")
        assert Entry.objects.filter(action="audit.accept").count() == 1

    def test_the_given_name_is_recorded(self, newer_file: Path) -> None:
        check(reason="Restored", by="Dana Reed")
        assert Entry.objects.get(action="audit.accept").actor_name == "Dana Reed (command line)"

    def test_checkpoints_before_the_backup_still_count(self, newer_file: Path) -> None:
        check(reason="Restored")
        rewrite_chain()
        assert "Entry 7 or one before it was rewritten" in failure()

    def test_a_lost_checkpoint_file_can_be_accepted(self, newer_file: Path) -> None:
        check(reason="Restored")
        newer_file.unlink()
        assert "was signed, but the checkpoint file is missing" in failure()
        assert "one unbroken chain" in check(reason="The volume was lost")
        assert "one unbroken chain" in check()

    def test_an_altered_entry_cannot_be_accepted(self, newer_file: Path) -> None:
        tamper("UPDATE audit_entry SET reason = 'False' WHERE id = 3")
        assert failure(reason="Restored").startswith("Entry 3 was altered")
        assert not Entry.objects.filter(action="audit.accept").exists()

    def test_accepting_requires_a_reason(self, newer_file: Path) -> None:
        assert failure(reason=" ") == "Give the reason the checkpoints differ from the trail."


@pytest.mark.django_db
class TestKeys:
    @pytest.mark.parametrize(
        ("old", "new", "reason"),
        [
            ('"entry": 7', '"entry": 6', "the signature doesn’t match"),
            ('"key": "', '"key": "0', "its key isn’t configured here"),
            ('"hash"', '"hush"', "the line can’t be read|its key"),
            ("{", "", "the line can’t be read"),
            ('"key"', '"keeps": 0, "key"', "the signature doesn’t match"),
        ],
    )
    def test_a_forged_line_is_refused(self, signed_file: Path, old: str, new: str, reason: str) -> None:
        signed_file.write_text(signed_file.read_text().replace(old, new))
        with pytest.raises(CommandError, match=f"checkpoints.jsonl, line 1: ({reason})"):
            check()
        assert Entry.objects.get(action="audit.verify", result="broken").detail["problem"]

    def test_the_trail_can_be_checked_against_a_copy(self, signed_file: Path, tmp_path: Path) -> None:
        copy = tmp_path / "copy.jsonl"
        copy.write_text(signed_file.read_text())
        assert check(copy=copy) == "7 entries, one unbroken chain.\n"
        rewrite_chain()
        assert "was rewritten: the checkpoint" in failure(copy=copy)
        copy.write_text("")
        assert "copy.jsonl is missing or empty." in failure(copy=copy)
        copy.unlink()
        assert "copy.jsonl is missing or empty." in failure(copy=copy)

    def test_the_key_is_replaced_and_older_checkpoints_stay_valid(
        self, signed_file: Path, settings: LazySettings
    ) -> None:
        words = check(new_key=True)
        first, settings.AUDIT_CHECKPOINT_KEY = (
            (signed_file.parent / "key").read_text(),
            words.split("KEY=")[1].split()[0],
        )
        (signed_file.parent / "key").unlink()
        assert "its key isn’t configured here" in failure()
        settings.AUDIT_CHECKPOINT_FORMER_KEYS = [checkpoints.public_key_of(first)]
        check()
        check()
        assert len(signed_file.read_text().splitlines()) == 3

    @pytest.mark.parametrize("key", ["AAAA", "?"])
    def test_an_invalid_key_is_reported(self, db: None, settings: LazySettings, key: str) -> None:
        settings.AUDIT_CHECKPOINT_KEY = key
        assert "The checkpoint key isn’t an Ed25519 key" in failure()
