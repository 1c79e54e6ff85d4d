"""A trail that was tampered with fails its check, and the failure reaches whoever looks; a restore is recorded."""

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
from django.db import connection
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
from tests.portal.audit.test_chain import MAYA, five, reseal, run
from tests.portal.borrowers.wizard import Wizard


def check(**options: object) -> str:
    """What the command says; where it fails it raises."""
    words = StringIO()
    call_command("verify_audit", stdout=words, stderr=StringIO(), **options)
    return words.getvalue()


def failure(**options: object) -> str:
    """Why the command fails."""
    with pytest.raises(CommandError) as failed:
        check(**options)
    return str(failed.value)


def file(settings: LazySettings) -> Path:
    return Path(settings.AUDIT_CHECKPOINT_DIR) / "checkpoints.jsonl"


def unguarded(*statements: str) -> None:
    """Tamper as the owner of the database can, and leave its guard as it was."""
    guard.remove_triggers(connection)
    run(*statements)
    bring_guard_back()


def bring_guard_back() -> None:
    if connection.vendor == "postgresql":  # It makes no trigger while a check of a foreign key waits.
        databases.run("SET CONSTRAINTS ALL IMMEDIATE", "SET CONSTRAINTS ALL DEFERRED")
    guard.install_triggers(connection)


def rewrite_all() -> None:
    """A chain of other words that fits in itself."""
    guard.remove_triggers(connection)
    previous = GENESIS_HASH
    for number in Entry.objects.order_by("id").values_list("id", flat=True):
        reseal(number, previous_hash=previous, reason="Rewritten")
        previous = Entry.objects.get(pk=number).hash
    bring_guard_back()


@pytest.fixture
def signed(db: None, settings: LazySettings) -> Path:
    """Five entries, checked and signed: entry 6 is the check, entry 7 the checkpoint."""
    five()
    assert check() == "5 entries, one unbroken chain.\nSigned: entry 7 is the last one.\n"
    return file(settings)


class TestTampering:
    @pytest.mark.parametrize("recent", [False, True])
    @pytest.mark.parametrize("left", [6, 2, 0], ids=["last entry cut", "tail cut", "emptied"])
    def test_a_trail_that_lost_its_end_is_found(self, signed: Path, left: int, recent: bool) -> None:
        unguarded(f"DELETE FROM audit_entry WHERE id > {left}")
        assert verify_chain().found is None
        assert failure(recent=recent).startswith("Entry 7 was removed: the checkpoint of ")
        append(MAYA, "lookup.correct")
        assert "Entry 7 was removed" in failure() or "Entry 7 or one before it was rewritten" in failure()

    @pytest.mark.parametrize("recent", [False, True])
    def test_a_trail_cut_back_to_an_earlier_checkpoint_is_found(self, signed: Path, recent: bool) -> None:
        append(MAYA, "lookup.correct")
        check(recent=True)
        unguarded("DELETE FROM audit_entry WHERE id > 7")
        words = "The trail ends before its last checkpoint. Run manage.py verify_audit."
        assert words in [one.words for one in doctor.trail() if one.grade == "bad"]
        assert failure(recent=recent).startswith("Entry 9 was removed: the checkpoint of ")

    @pytest.mark.parametrize("recent", [False, True])
    def test_a_chain_that_was_rewritten_whole_is_found(self, signed: Path, recent: bool) -> None:
        rewrite_all()
        assert verify_chain().found is None
        assert failure(recent=recent).startswith("Entry 7 or one before it was rewritten: the checkpoint of ")

    @pytest.mark.parametrize("recent", [False, True])
    @pytest.mark.parametrize("loss", ["missing", "empty", "shortened", "older"])
    def test_a_file_of_checkpoints_that_lost_lines_is_found(
        self, signed: Path, loss: str, recent: bool
    ) -> None:
        older = signed.read_text()
        append(MAYA, "lookup.correct")
        check(recent=True)
        lines = signed.read_text().splitlines(keepends=True)
        assert len(lines) == 2
        signed.unlink()
        if loss != "missing":
            signed.write_text(
                {"empty": "", "shortened": lines[1] if not recent else lines[0], "older": older}[loss]
            )
        if recent or loss != "shortened":  # Only a whole check misses an earlier line.
            (bad,) = [one.words for one in doctor.trail() if one.grade == "bad"]
            assert bad.startswith("The trail was signed, but the checkpoint file is missing")
        assert "was signed, but the checkpoint file is missing, truncated" in failure(recent=recent)

    def test_what_is_newer_than_the_last_checkpoint_is_checked_before_it_is_signed(
        self, signed: Path
    ) -> None:
        append(MAYA, "lookup.correct", reason="True")
        unguarded("UPDATE audit_entry SET reason = 'False' WHERE id = 8")
        assert "Entry 8 was altered" in failure(recent=True)
        assert "Not signed, because the last check failed. Entry 8 was altered" in failure(recent=True)
        assert len(signed.read_text().splitlines()) == 1

    def test_a_process_that_dies_while_it_signs_leaves_nothing_that_is_missed(self, signed: Path) -> None:
        """The file is replaced twice; the entry in between may be the last thing that happened."""
        older = signed.read_text()
        append(MAYA, "lookup.correct")
        check(recent=True)
        signed.write_text(older)
        (record,) = Entry.objects.filter(action="audit.checkpoint")[:1]
        unguarded(f"DELETE FROM audit_entry WHERE id = {record.pk}")
        assert "one unbroken chain" in check()

    def test_nothing_new_is_not_signed_again(self, signed: Path) -> None:
        assert check(recent=True) == "Nothing new to sign.\n"
        assert Entry.objects.count() == 7

    def test_checkpoints_are_their_owners_alone(self, signed: Path) -> None:
        assert signed.parent.stat().st_mode & 0o777 == 0o700
        assert {one.name for one in signed.parent.iterdir()} == {"checkpoints.jsonl", "key"}
        assert {one.stat().st_mode & 0o777 for one in signed.parent.iterdir()} == {0o600}

    def test_a_process_that_was_not_given_the_folder_cannot_check(
        self, signed: Path, settings: LazySettings
    ) -> None:
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


# A failed check leaves no entry: the database drops it without a word.
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


# Nothing can be recorded any more, a failed check neither.
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


def put_file_in_place_of_folder(signed: Path) -> None:
    shutil.rmtree(signed.parent)
    signed.parent.write_text("")


ATTACKS: dict[str, Callable[[Path], object]] = {
    "tail cut": lambda signed: unguarded("DELETE FROM audit_entry WHERE id > 5"),
    "emptied trail": lambda signed: unguarded("DELETE FROM audit_entry"),
    "rewritten chain": lambda signed: rewrite_all(),
    "missing checkpoint file": lambda signed: signed.unlink(),
    "shortened checkpoint file": lambda signed: signed.write_text(""),
    "folder of checkpoints replaced by a file": put_file_in_place_of_folder,
    "neutered guard": lambda signed: run(*next(iter(NEUTERED[connection.vendor].values()))),
    "silenced trail": lambda signed: run(*SILENCED[connection.vendor]),
}


def state_after(name: str) -> str:
    """How a scheduled check ends."""
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
    def test_a_guard_is_compared_by_what_it_does(self, signed: Path, how: str, recent: bool) -> None:
        append(MAYA, "lookup.correct")
        run(*NEUTERED[connection.vendor][how])
        assert guard.find_differences(connection)
        reason = failure(recent=recent)
        assert "The trigger audit_entry_" in reason or "which the portal didn’t create" in reason
        assert next(one.words for one in doctor.trail() if one.grade == "bad") in reason

    @pytest.mark.parametrize("recent", [False, True])
    def test_a_trail_that_takes_no_entry_is_reported(self, signed: Path, recent: bool) -> None:
        run(*REFUSING[connection.vendor])
        assert "The audit table has refuse, which the portal didn’t create." in failure(recent=recent)

    def test_a_view_in_place_of_the_trail_is_found_and_nothing_is_signed(self, signed: Path) -> None:
        lines = signed.read_text()
        run(*REPLACED[connection.vendor])
        assert "audit_entry isn't a table; something replaced it" in failure()
        with pytest.raises(checkpoints.UnusableCheckpoints, match="isn’t in the trail"):
            checkpoints.sign_checkpoint(Entry(id=Entry.objects.count() + 1, hash="f" * 64))
        assert signed.read_text() == lines

    def test_an_upgrade_repairs_it_and_records_what_was_wrong(self, signed: Path) -> None:
        run(*next(iter(NEUTERED[connection.vendor].values())))
        call_command("migrate", verbosity=0)
        assert "one unbroken chain" in check()
        entry = Entry.objects.get(action="audit.guard")
        assert entry.actor_name.endswith(" (command line)")
        assert "was changed. Run manage.py upgrade" in entry.detail["found"]

    def test_an_upgrade_of_a_sound_guard_records_nothing(self, signed: Path) -> None:
        call_command("migrate", verbosity=0)
        assert not Entry.objects.filter(action="audit.guard").exists()


class TestOtherTables:
    @pytest.fixture
    def at_work(self, portal_service: Sandbox, servicer: Browser) -> None:
        """A borrower was created and looked at, and a statement printed; then the trail was signed."""
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
    def test_what_they_say_must_be_in_the_trail(self, at_work: None, attack: list[str], named: str) -> None:
        strange = "0" * 32 if connection.vendor == "sqlite" else str(UUID(int=0))
        run(*(statement.format(strange) for statement in attack))
        assert f"There is {named}" in failure()

    def test_what_was_cut_off_before_it_was_signed_is_found(
        self, portal_service: Sandbox, servicer: Browser
    ) -> None:
        check()
        before = Entry.objects.count()
        assert Wizard(servicer).fill().send().status_code == 303
        assert Entry.objects.filter(pk__gt=before, phase=Entry.Phase.OUTCOME).exists()
        unguarded("DELETE FROM audit_sighting", f"DELETE FROM audit_entry WHERE id > {before}")
        words = failure()
        assert "There is a request to the service whose attempt isn’t in the trail" in words
        assert "There is a call to the service whose request isn’t in the trail" in words

    def test_every_table_that_names_an_entry_is_compared(self) -> None:
        for relation in Entry._meta.related_objects:
            assert callable(relation.related_model.objects.unrecorded)


class TestReport:
    """Whoever tampers, the failure is on the home page, in the metrics, on the job and in the exit code."""

    @pytest.mark.parametrize("name", ["operations.verify_audit", "operations.sign_audit"])
    @pytest.mark.parametrize("attack", ATTACKS)
    def test_a_scheduled_check_that_fails_is_seen(
        self, signed: Path, viewer: Browser, settings: LazySettings, attack: str, name: str
    ) -> None:
        settings.METRICS_TOKEN = "0123456789abcdef"
        assert "audit trail" not in viewer.get("/").content.decode()
        assert "desk_audit_unbroken 1" in metrics(viewer)
        unguarded("DELETE FROM audit_sighting")
        ATTACKS[attack](signed)
        assert state_after(name) == Job.State.FAILED
        page = unescape(viewer.get("/").content.decode())
        assert "The audit trail failed its check" in page or "The audit trail could not be checked" in page
        assert "desk_audit_unbroken 0" in metrics(viewer)
        assert [one.words for one in doctor.trail() if one.grade == "bad"]

    def test_a_check_that_passes_ends_the_warning(
        self, signed: Path, viewer: Browser, settings: LazySettings
    ) -> None:
        settings.METRICS_TOKEN = "0123456789abcdef"
        append(MAYA, "lookup.correct")
        ATTACKS["folder of checkpoints replaced by a file"](signed)
        assert state_after("operations.sign_audit") == Job.State.FAILED
        assert "could not be checked" in viewer.get("/").content.decode()
        signed.parent.unlink()
        assert "one unbroken chain" in check(reason="The folder was lost")
        assert "audit trail" not in viewer.get("/").content.decode()
        assert "desk_audit_unbroken 1" in metrics(viewer)

    def test_a_trail_known_to_be_broken_fails_no_further_signing(self, signed: Path) -> None:
        unguarded("DELETE FROM audit_sighting", "DELETE FROM audit_entry WHERE id > 5")
        kind = kinds.find_kind("operations.sign_audit")
        assert kind
        states = []
        for _ in range(3):
            start_job(kind)
            call_command("work", batch=True)
            states.append(Job.latest(kind.name).state)  # type: ignore[union-attr]
        assert states == [Job.State.FAILED, Job.State.DONE, Job.State.DONE]
        assert Entry.objects.filter(action="audit.verify", result="broken").count() == 1
        assert len(signed.read_text().splitlines()) == 1
        assert any("Entry 7 was removed" in one.words for one in doctor.trail() if one.grade == "bad")

    def test_checkpoints_that_cannot_be_read_fail_one_signing_only(
        self, signed: Path, settings: LazySettings
    ) -> None:
        append(MAYA, "lookup.correct")
        signed.write_text("{\n")
        assert "line 1: the line can’t be read" in failure(recent=True)
        assert "Not signed, because the last check failed." in failure(recent=True)

    def test_a_check_that_no_longer_runs_is_seen(self, signed: Path, viewer: Browser) -> None:
        with time_machine.travel(timezone.now() + timedelta(days=3)):
            assert "The audit trail was not checked" in browser_of(Role.VIEWER).get("/").content.decode()

    def test_a_worker_checks_and_signs_by_itself(self, signed: Path, portal_service: Sandbox) -> None:
        queue.start_scheduled_jobs()
        names = set(Job.objects.values_list("name", flat=True))
        assert {"operations.verify_audit", "operations.sign_audit"} <= names
        call_command("work", batch=True)
        assert len(signed.read_text().splitlines()) == 2


@pytest.mark.django_db(transaction=True)
class TestRestoring:
    @pytest.fixture
    def older(self, settings: LazySettings, tmp_path: Path) -> Path:
        """The database was put back to an earlier day, after more was signed."""
        if connection.vendor == "postgresql" and not shutil.which("pg_dump"):
            pytest.skip("pg_dump is not installed")
        five()
        check()
        call_command("backup", tmp_path / "copy", stdout=StringIO())
        append(MAYA, "lookup.correct")
        check()
        words = StringIO()
        call_command("restore", tmp_path / "copy", replace=True, stdout=words)
        assert "manage.py verify_audit --accept REASON" in words.getvalue()
        return file(settings)

    @pytest.mark.parametrize("recent", [False, True])
    def test_an_older_database_is_no_silent_pass(self, older: Path, recent: bool) -> None:
        words = failure(recent=recent)
        assert "was rewritten: the checkpoint of" in words or "was removed: the checkpoint of" in words
        assert words.endswith(
            "If the database was restored on purpose, record that: manage.py verify_audit --accept REASON"
        )
        for _ in range(9):
            append(MAYA, "lookup.correct")
        assert "was rewritten: the checkpoint of" in failure()

    def test_one_step_records_that_it_is_meant(self, older: Path) -> None:
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

    def test_it_names_who_accepts(self, older: Path) -> None:
        check(reason="Restored", by="Dana Reed")
        assert Entry.objects.get(action="audit.accept").actor_name == "Dana Reed (command line)"

    def test_what_was_signed_before_the_copy_still_counts(self, older: Path) -> None:
        check(reason="Restored")
        rewrite_all()
        assert "Entry 7 or one before it was rewritten" in failure()

    def test_a_lost_file_is_accepted_in_the_same_way(self, older: Path) -> None:
        check(reason="Restored")
        older.unlink()
        assert "was signed, but the checkpoint file is missing" in failure()
        assert "one unbroken chain" in check(reason="The volume was lost")
        assert "one unbroken chain" in check()

    def test_what_does_not_fit_in_itself_is_never_accepted(self, older: Path) -> None:
        unguarded("UPDATE audit_entry SET reason = 'False' WHERE id = 3")
        assert failure(reason="Restored").startswith("Entry 3 was altered")
        assert not Entry.objects.filter(action="audit.accept").exists()

    def test_it_needs_a_reason(self, older: Path) -> None:
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
    def test_a_forged_line_is_refused(self, signed: Path, old: str, new: str, reason: str) -> None:
        signed.write_text(signed.read_text().replace(old, new))
        with pytest.raises(CommandError, match=f"checkpoints.jsonl, line 1: ({reason})"):
            check()
        assert Entry.objects.get(action="audit.verify", result="broken").detail["problem"]

    def test_a_copy_of_the_file_is_enough_to_check(self, signed: Path, tmp_path: Path) -> None:
        copy = tmp_path / "copy.jsonl"
        copy.write_text(signed.read_text())
        assert check(copy=copy) == "7 entries, one unbroken chain.\n"
        rewrite_all()
        assert "was rewritten: the checkpoint" in failure(copy=copy)
        copy.write_text("")
        assert "copy.jsonl is missing or empty." in failure(copy=copy)
        copy.unlink()
        assert "copy.jsonl is missing or empty." in failure(copy=copy)

    def test_the_key_is_replaced_and_older_checkpoints_stay_valid(
        self, signed: Path, settings: LazySettings
    ) -> None:
        words = check(new_key=True)
        first, settings.AUDIT_CHECKPOINT_KEY = (
            (signed.parent / "key").read_text(),
            words.split("KEY=")[1].split()[0],
        )
        (signed.parent / "key").unlink()
        assert "its key isn’t configured here" in failure()
        settings.AUDIT_CHECKPOINT_FORMER_KEYS = [checkpoints.public_key_of(first)]
        check()
        check()
        assert len(signed.read_text().splitlines()) == 3

    @pytest.mark.parametrize("key", ["AAAA", "?"])
    def test_a_key_that_cannot_be_used_is_said(self, db: None, settings: LazySettings, key: str) -> None:
        settings.AUDIT_CHECKPOINT_KEY = key
        assert "The checkpoint key isn’t an Ed25519 key" in failure()
