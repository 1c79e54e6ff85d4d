"""The file that keeps answers: its space is taken beforehand, it is private, and what was cut off is no entry."""

import contextlib
import json
import threading
from decimal import Decimal
from pathlib import Path
from uuid import uuid4

import pytest
from django.conf import LazySettings
from django.core.management import CommandError, call_command
from django.test import Client as Browser

from portal.audit import outcomes, spool
from portal.audit.models import RemoteCall, WriteIntent
from portal.registry.models import Record
from servicing.sandbox import Sandbox
from tests import databases, given
from tests.portal.borrowers.editor import BORN, SSN, TWICE, WITH_SSN, Editor

ENTRY = {"uuid": "4f1b", "amount": Decimal("12.50"), "name": "Café \ud800"}


@pytest.fixture
def file(settings: LazySettings, tmp_path: Path) -> Path:
    settings.DATA_DIR = tmp_path
    spool.allocate()
    return spool.path()


def test_its_space_is_taken_at_the_start(file: Path) -> None:
    found = file.stat()
    assert (found.st_size, found.st_mode & 0o777) == (spool.FILE_BYTES, 0o600)
    assert found.st_blocks * 512 >= spool.FILE_BYTES
    assert file.parent.stat().st_mode & 0o777 == 0o700


def test_what_is_put_is_read_until_it_is_removed(file: Path) -> None:
    first, second = spool.put(ENTRY), spool.put({"uuid": "x" * 9000})
    assert first
    assert second
    assert [entry["uuid"] for _, entry in spool.entries()] == ["4f1b", "x" * 9000]
    spool.remove(first)
    spool.remove(first)
    assert [ticket for ticket, _ in spool.entries()] == [second]
    third = spool.put({"uuid": "third"})
    spool.remove(first)  # Its place is another's now.
    assert third
    assert [entry["uuid"] for _, entry in spool.entries()] == ["third", "x" * 9000]
    assert file.stat().st_size == spool.FILE_BYTES


def test_what_was_cut_off_is_passed_over(file: Path) -> None:
    ticket = spool.put({"uuid": "x" * 9000})
    assert ticket
    with file.open("r+b") as writable:
        writable.seek(5000)
        writable.write(b"\0" * 100)
    assert spool.entries() == []
    assert spool.put(ENTRY)
    assert len(spool.entries()) == 1


def test_what_has_no_room_leaves_its_short_form_and_then_nothing(file: Path) -> None:
    while spool.put({"body": "x" * 60_000}):
        pass
    assert spool.put({"body": "x" * 60_000}, {"uuid": "short"})
    assert spool.entries()[-1][1] == {"uuid": "short"}
    while spool.put({"uuid": "short"}):
        pass
    assert file.stat().st_size == spool.FILE_BYTES


def test_several_write_at_once(file: Path) -> None:
    def write(number: int) -> None:
        for one in range(10):
            ticket = spool.put({"uuid": f"{number}-{one}", "body": "x" * 5000})
            if one % 2 and ticket:
                spool.remove(ticket)

    threads = [threading.Thread(target=write, args=[number]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {entry["uuid"] for _, entry in spool.entries()} == {
        f"{number}-{one}" for number in range(8) for one in range(0, 10, 2)
    }


def test_nothing_sensitive_waits_in_it(servicer: Browser, desk: Sandbox, settings: LazySettings) -> None:
    settings.APPROVAL_ACTS = []
    editor = Editor(servicer, given.individual(desk))
    databases.fill_the_disk("audit_entry", "NEW.phase = 'outcome'")
    echoed = {"ssn": SSN, "dob": "1987/04/19", "credit_report_xml_gzip": "H4sIAAAA"}
    desk.fail_next("borrowers.update", changes=echoed)
    assert editor.send(TWICE, **WITH_SSN, **BORN).status_code == 503
    [(_, entry)] = spool.entries()
    assert entry["uuid"] == editor.record.uuid
    text = spool.path().read_bytes()
    secrets = (SSN, SSN.replace("-", ""), "1987/04/19", "1987-04-19", "H4sIAAAA")
    assert [secret for secret in secrets if secret.encode() in text] == []


def test_without_a_file_one_line_goes_to_stderr_and_the_page_shows_the_uuid(
    servicer: Browser,
    desk: Sandbox,
    settings: LazySettings,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "spool").write_text("in the way")
    settings.DATA_DIR, borrower = tmp_path, given.borrower(desk)
    databases.fill_the_disk("audit_entry", "NEW.phase = 'outcome'")
    page = Editor(servicer, borrower).send(email="new@bakery.example")
    assert page.status_code == 503
    assert "Done at the service, not saved here yet" in page.content.decode()
    assert borrower.uuid in page.content.decode()
    lines = [line for line in capfd.readouterr().err.splitlines() if line.startswith("{")]
    told = json.loads(lines[-1])
    assert (told["uuid"], told["state"], told["operation"]) == (
        borrower.uuid,
        "confirmed",
        "borrowers.update",
    )
    assert told["intent_id"] == str(WriteIntent.objects.get().pk)


def test_an_entry_without_its_write_waits_and_stops_no_other(
    servicer: Browser, desk: Sandbox, settings: LazySettings
) -> None:
    databases.fill_the_disk("audit_entry", "NEW.phase = 'outcome'")
    Editor(servicer, given.borrower(desk)).send(email="new@bakery.example")
    [(ticket, entry)] = spool.entries()
    spool.remove(ticket)
    spool.put(entry | {"intent_id": "11111111-1111-4111-8111-111111111111"})
    spool.put(entry)
    databases.free_the_disk("audit_entry")
    assert (outcomes.replay(), outcomes.replay()) == (1, 1)
    assert (WriteIntent.objects.get().state, RemoteCall.objects.count()) == ("confirmed", 1)


def test_the_short_form_still_says_what_was_made(servicer: Browser, desk: Sandbox) -> None:
    borrower = given.borrower(desk)
    databases.fill_the_disk("registry_record")
    typed = {"submit_id": str(uuid4()), "amount": "25,170.00", "confirmed": "yes"}
    assert servicer.post(f"/borrowers/{borrower.uuid}/applications/new/", typed).status_code == 503
    [(ticket, entry)] = spool.entries()
    spool.remove(ticket)
    assert spool.put(outcomes.WriteResult.from_spool(entry).for_spool()[1])
    databases.free_the_disk("registry_record")
    assert outcomes.replay() == 0
    intent = WriteIntent.objects.get()
    assert (intent.state, intent.subject_uuid) == ("confirmed", entry["uuid"])
    assert Record.objects.get(uuid=entry["uuid"]).borrower_uuid == borrower.uuid


@pytest.mark.parametrize("command", ["doctor", "work"])
def test_commands_record_what_waits(
    servicer: Browser, desk: Sandbox, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    databases.fill_the_disk("audit_entry", "NEW.phase = 'outcome'")
    Editor(servicer, given.borrower(desk)).send(email="new@bakery.example")
    databases.free_the_disk("audit_entry")
    with contextlib.suppress(CommandError):  # The doctor finds fault with a local start.
        call_command(command, **({"batch": True} if command == "work" else {}))
    assert (WriteIntent.objects.get().state, spool.entries()) == ("confirmed", [])


def test_the_doctor_says_what_cannot_be_recorded(
    servicer: Browser, desk: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    databases.fill_the_disk("audit_entry", "NEW.phase = 'outcome'")
    borrower = given.borrower(desk)
    Editor(servicer, borrower).send(email="new@bakery.example")
    with contextlib.suppress(CommandError):
        call_command("doctor")
    assert (
        f"1 answer of writes can't be saved (see the log), first {borrower.uuid}." in capsys.readouterr().out
    )
