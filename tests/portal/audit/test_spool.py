"""The spool: its space is reserved at startup, it is private, and its entries are saved later."""

import contextlib
import json
import os
import threading
from decimal import Decimal
from pathlib import Path
from uuid import uuid4

import pytest
from django.conf import LazySettings
from django.core.management import CommandError, call_command
from django.test import Client as Browser

from portal.audit import writes
from portal.audit.models import Entry, RemoteCall, WriteIntent
from portal.audit.spool import ANSWERS, VIEWS, Spool
from portal.registry.models import Record
from servicing.sandbox import Sandbox
from tests import databases, given
from tests.portal.borrowers.editor import BORN, SSN, TWICE, WITH_SSN, Editor

ENTRY = {"uuid": "4f1b", "amount": Decimal("12.50"), "name": "Café \ud800"}


@pytest.fixture
def file(settings: LazySettings, tmp_path: Path) -> Path:
    settings.DATA_DIR = tmp_path
    writes.prepare_spool()
    return ANSWERS.path


@pytest.mark.parametrize("spool", [ANSWERS, VIEWS])
def test_space_is_reserved_at_startup(file: Path, spool: Spool) -> None:
    found = spool.path.stat()
    assert (found.st_size, found.st_mode & 0o777) == (spool.file_bytes, 0o600)
    assert found.st_blocks * 512 >= spool.file_bytes
    assert file.parent.stat().st_mode & 0o777 == 0o700


def test_entries_are_read_until_removed(file: Path) -> None:
    first, second = ANSWERS.put(ENTRY), ANSWERS.put({"uuid": "x" * 9000})
    assert first
    assert second
    assert [entry["uuid"] for _, entry in ANSWERS.entries()] == ["4f1b", "x" * 9000]
    ANSWERS.remove(first)
    ANSWERS.remove(first)
    assert [ticket for ticket, _ in ANSWERS.entries()] == [second]
    third = ANSWERS.put({"uuid": "third"})
    ANSWERS.remove(first)  # The third entry has its place now.
    assert third
    assert [entry["uuid"] for _, entry in ANSWERS.entries()] == ["third", "x" * 9000]
    assert file.stat().st_size == ANSWERS.file_bytes


def test_damaged_entries_are_skipped(file: Path) -> None:
    ticket = ANSWERS.put({"uuid": "x" * 9000})
    assert ticket
    with file.open("r+b") as writable:
        writable.seek(5000)
        writable.write(b"\0" * 100)
    assert ANSWERS.entries() == []
    assert ANSWERS.put(ENTRY)
    assert len(ANSWERS.entries()) == 1


def test_a_full_spool_stores_short_forms(file: Path) -> None:
    while ANSWERS.put({"body": "x" * 60_000}):
        pass
    assert ANSWERS.put({"body": "x" * 60_000}, {"uuid": "short"})
    assert ANSWERS.entries()[-1][1] == {"uuid": "short"}
    while ANSWERS.put({"uuid": "short"}):
        pass
    assert file.stat().st_size == ANSWERS.file_bytes


def test_concurrent_writes_lose_no_entry(file: Path) -> None:
    def write(number: int) -> None:
        for one in range(10):
            ticket = ANSWERS.put({"uuid": f"{number}-{one}", "body": "x" * 5000})
            if one % 2 and ticket:
                ANSWERS.remove(ticket)

    threads = [threading.Thread(target=write, args=[number]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {entry["uuid"] for _, entry in ANSWERS.entries()} == {
        f"{number}-{one}" for number in range(8) for one in range(0, 10, 2)
    }


def test_the_spool_holds_no_secrets(
    servicer: Browser, portal_service: Sandbox, settings: LazySettings
) -> None:
    settings.APPROVAL_ACTS = []
    editor = Editor(servicer, given.individual(portal_service))
    databases.reject_inserts("audit_entry", "NEW.phase = 'outcome'")
    echoed = {"ssn": SSN, "dob": "1987/04/19", "credit_report_xml_gzip": "H4sIAAAA"}
    portal_service.fail_next("borrowers.update", changes=echoed)
    assert editor.send(TWICE, **WITH_SSN, **BORN).status_code == 503
    [(_, entry)] = ANSWERS.entries()
    assert entry["uuid"] == editor.record.uuid
    text = ANSWERS.path.read_bytes()
    secrets = (SSN, SSN.replace("-", ""), "1987/04/19", "1987-04-19", "H4sIAAAA")
    assert [secret for secret in secrets if secret.encode() in text] == []


def test_without_a_file_stderr_and_the_page_show_the_id(
    servicer: Browser,
    portal_service: Sandbox,
    settings: LazySettings,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "spool").write_text("in the way")
    settings.DATA_DIR, borrower = tmp_path, given.borrower(portal_service)
    databases.reject_inserts("audit_entry", "NEW.phase = 'outcome'")
    page = Editor(servicer, borrower).send(email="new@bakery.example")
    assert page.status_code == 503
    assert "Done at the service, not saved here yet" in page.content.decode()
    assert borrower.uuid in page.content.decode()
    lines = [line for line in capfd.readouterr().err.splitlines() if line.startswith("{")]
    logged = json.loads(lines[-1])
    assert (logged["uuid"], logged["state"], logged["operation"]) == (
        borrower.uuid,
        "confirmed",
        "borrowers.update",
    )
    assert logged["intent_id"] == str(WriteIntent.objects.get().pk)


def test_the_page_shows_the_id_even_if_stderr_fails(
    servicer: Browser, portal_service: Sandbox, settings: LazySettings, tmp_path: Path
) -> None:
    (tmp_path / "spool").write_text("in the way")
    settings.DATA_DIR, borrower = tmp_path, given.borrower(portal_service)
    databases.reject_inserts("audit_entry", "NEW.phase = 'outcome'")
    stderr, full = os.dup(2), os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, 2)
    try:
        page = Editor(servicer, borrower).send(email="new@bakery.example")
    finally:
        os.dup2(stderr, 2)
    assert page.status_code == 503
    assert "Done at the service, not saved here yet" in page.content.decode()
    assert borrower.uuid in page.content.decode()


def test_an_entry_without_its_write_blocks_no_other(
    servicer: Browser, portal_service: Sandbox, settings: LazySettings
) -> None:
    databases.reject_inserts("audit_entry", "NEW.phase = 'outcome'")
    Editor(servicer, given.borrower(portal_service)).send(email="new@bakery.example")
    [(ticket, entry)] = ANSWERS.entries()
    ANSWERS.remove(ticket)
    ANSWERS.put(entry | {"intent_id": "11111111-1111-4111-8111-111111111111"})
    ANSWERS.put(entry)
    databases.allow_inserts("audit_entry")
    assert (writes.replay_answers(), writes.replay_answers()) == (1, 1)
    assert (WriteIntent.objects.get().state, RemoteCall.objects.count()) == ("confirmed", 1)


def test_an_operator_discards_an_entry_with_a_reason(
    servicer: Browser, portal_service: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    databases.reject_inserts("audit_entry", "NEW.phase = 'outcome'")
    borrower, missing = given.borrower(portal_service), "11111111-1111-4111-8111-111111111111"
    Editor(servicer, borrower).send(email="new@bakery.example")
    [(_, entry)] = ANSWERS.entries()
    ANSWERS.put(entry | {"intent_id": missing})
    for wrong in ({"discard": missing}, {"discard": entry["intent_id"], "reason": "Not this one"}):
        with pytest.raises(CommandError, match=r"Give a reason|No saved response"):
            call_command("doctor", **wrong)
    databases.allow_inserts("audit_entry")
    with contextlib.suppress(CommandError):
        call_command("doctor")
    assert f"run manage.py doctor --discard {missing} --reason WHY." in capsys.readouterr().out
    with contextlib.suppress(CommandError):
        call_command("doctor", discard=missing, reason="Restored the backup of Sunday")
    assert "No responses are waiting to be saved." in capsys.readouterr().out
    discarded = Entry.objects.get(action="audit.discard_answer")
    assert (discarded.subject_uuid, discarded.reason) == (borrower.uuid, "Restored the backup of Sunday")
    assert (discarded.detail["write"], discarded.detail["state"]) == (missing, "confirmed")
    assert ANSWERS.entries() == []
    call_command("verify_audit", verbosity=0)


def test_a_short_form_restores_the_record(servicer: Browser, portal_service: Sandbox) -> None:
    borrower = given.borrower(portal_service)
    databases.reject_inserts("registry_record")
    typed = {"submit_id": str(uuid4()), "amount": "25,170.00", "confirmed": "yes"}
    assert servicer.post(f"/borrowers/{borrower.uuid}/applications/new/", typed).status_code == 503
    [(ticket, entry)] = ANSWERS.entries()
    ANSWERS.remove(ticket)
    assert ANSWERS.put(writes.WriteResult.from_spool(entry).for_spool()[1])
    databases.allow_inserts("registry_record")
    assert writes.replay_answers() == 0
    intent = WriteIntent.objects.get()
    assert (intent.state, intent.subject_uuid) == ("confirmed", entry["uuid"])
    assert Record.objects.get(uuid=entry["uuid"]).borrower_uuid == borrower.uuid


@pytest.mark.parametrize("command", ["doctor", "work"])
def test_commands_save_waiting_responses(
    servicer: Browser, portal_service: Sandbox, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    databases.reject_inserts("audit_entry", "NEW.phase = 'outcome'")
    Editor(servicer, given.borrower(portal_service)).send(email="new@bakery.example")
    databases.allow_inserts("audit_entry")
    with contextlib.suppress(CommandError):  # The doctor rejects local settings.
        call_command(command, **({"batch": True} if command == "work" else {}))
    assert (WriteIntent.objects.get().state, ANSWERS.entries()) == ("confirmed", [])


def test_the_doctor_reports_responses_it_cannot_save(
    servicer: Browser, portal_service: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    databases.reject_inserts("audit_entry", "NEW.phase = 'outcome'")
    borrower = given.borrower(portal_service)
    Editor(servicer, borrower).send(email="new@bakery.example")
    with contextlib.suppress(CommandError):
        call_command("doctor")
    assert f"1 response can’t be saved (see the log), first {borrower.uuid}." in capsys.readouterr().out
