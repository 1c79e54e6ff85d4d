"""Answers of changes that the database doesn't take: one line of a file, from which the outcome is recorded later."""

import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.conf import LazySettings
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client as Browser

from portal.audit.models import Entry, RemoteCall, WriteIntent
from portal.audit.unsaved import answers_file, kept_answers
from portal.records.models import Application, KeyPerson
from portal.records.store import find
from servicing.sandbox import Sandbox
from tests import databases, given
from tests.portal.borrowers.editor import BORN, SSN, TWICE, WITH_SSN, Editor
from tests.portal.borrowers.wizard import Wizard
from tests.portal.pages import page, visible_text

pytestmark = pytest.mark.postgres

OUTCOMES = "NEW.phase = 'outcome'"


@pytest.fixture(autouse=True)
def data_folder(settings: LazySettings, tmp_path: Path) -> None:
    settings.DATA_DIR, settings.APPROVAL_ACTS = tmp_path, []


def onboard(servicer: Browser, portal_service: Sandbox) -> Any:
    return Wizard(servicer).fill().send()


def submit(servicer: Browser, portal_service: Sandbox) -> Any:
    borrower = given.borrower(portal_service)
    typed = {"submit_id": str(uuid4()), "amount": "25,170.00", "confirmed": "yes"}
    return servicer.post(f"/borrowers/{borrower.uuid}/applications/new/", typed)


def update(servicer: Browser, portal_service: Sandbox) -> Any:
    return Editor(servicer, given.borrower(portal_service)).send(email="new@bakery.example")


def update_person(servicer: Browser, portal_service: Sandbox) -> Any:
    given.borrower(portal_service)
    person = KeyPerson.objects.filter().earliest("pk")
    return Editor(servicer, person).send(email="new@bakery.example")


@pytest.fixture(params=[onboard, submit, update, update_person], ids=lambda change: change.__name__)
def lost(
    request: pytest.FixtureRequest,
    servicer: Browser,
    portal_service: Sandbox,
    capfd: pytest.CaptureFixture[str],
) -> tuple[WriteIntent, str]:
    """A change whose answer the database didn't take, and the page that its author got."""
    databases.reject_inserts("audit_entry", OUTCOMES)
    shown = request.param(servicer, portal_service)
    assert shown.status_code == 503
    databases.allow_inserts("audit_entry")
    return WriteIntent.objects.get(), visible_text(shown.content.decode())


def writes_sent(service: Sandbox) -> int:
    return sum(call.method != "GET" for call in service.calls)


@pytest.mark.slow
def test_the_answer_is_one_private_line(
    lost: tuple[WriteIntent, str], portal_service: Sandbox, capfd: pytest.CaptureFixture[str]
) -> None:
    intent, shown = lost
    (line,) = kept_answers()
    assert answers_file().stat().st_mode & 0o777 == 0o600
    assert (line["intent_id"], line["state"], line["status"]) == (str(intent.pk), "confirmed", 200)
    assert "Done at the service, not saved here yet" in shown
    assert line["uuid"] in shown
    assert intent.state == "sending"
    assert (writes_sent(portal_service), RemoteCall.objects.exclude(intent_id=None).count()) == (1, 0)
    logged = [json.loads(text) for text in capfd.readouterr().err.splitlines() if text.startswith("{")]
    assert (logged[-1]["uuid"], logged[-1]["level"]) == (line["uuid"], "CRITICAL")
    assert str(answers_file()) in logged[-1]["message"]


def assert_recorded(intent: WriteIntent, uuid: str, service: Sandbox) -> None:
    intent.refresh_from_db()
    assert (intent.state, intent.subject_uuid) == ("confirmed", uuid)
    assert RemoteCall.objects.get(intent_id=intent.pk).status == 200
    entries = Entry.objects.filter(intent_id=intent.pk).exclude(phase="event")
    assert list(entries.order_by("id").values_list("phase", flat=True)) == ["attempt", "outcome"]
    assert writes_sent(service) == 1
    saved = find(intent.subject_kind, uuid)
    assert json.loads(saved.answer.body)["uuid"] == uuid
    assert not answers_file().exists()
    call_command("verify_audit", verbosity=0)


@pytest.mark.slow
def test_the_command_records_it(
    lost: tuple[WriteIntent, str], portal_service: Sandbox, capfd: pytest.CaptureFixture[str]
) -> None:
    uuid = kept_answers()[0]["uuid"]
    call_command("save_answer")
    assert f"Saved: {lost[0].operation}, confirmed, {uuid}" in capfd.readouterr().out
    assert_recorded(lost[0], uuid, portal_service)
    call_command("save_answer")
    assert "No answers are waiting to be saved." in capfd.readouterr().out


@pytest.mark.slow
def test_a_supervisor_records_it_on_the_page(
    lost: tuple[WriteIntent, str], portal_service: Sandbox, supervisor: Browser, servicer: Browser
) -> None:
    intent, uuid = lost[0], kept_answers()[0]["uuid"]
    address = intent.get_absolute_url()
    assert "The service answered, but the answer isn’t saved yet." in page(servicer, address)
    assert servicer.post(f"{address}save-answer/").status_code == 403
    assert uuid in visible_text(page(supervisor, address))
    assert supervisor.post(f"{address}save-answer/").status_code == 303
    assert_recorded(intent, uuid, portal_service)
    assert "isn’t saved yet" not in page(supervisor, address)
    assert supervisor.post(f"{address}save-answer/").status_code == 303


@pytest.mark.slow
def test_an_answer_that_was_marked_unknown_is_resolved(
    lost: tuple[WriteIntent, str], portal_service: Sandbox, supervisor: Browser
) -> None:
    intent = lost[0]
    uuid = kept_answers()[0]["uuid"]
    WriteIntent.objects.filter(pk=intent.pk).update(created_at=intent.created_at.replace(year=2020))
    page(supervisor, intent.get_absolute_url())
    intent.refresh_from_db()
    assert intent.state == "unknown"
    call_command("save_answer", stdout=StringIO())
    intent.refresh_from_db()
    assert (intent.state, intent.subject_uuid) == ("confirmed", uuid)
    entries = Entry.objects.filter(intent_id=intent.pk).order_by("id")
    assert list(entries.values_list("phase", "result")) == [
        ("attempt", ""),
        ("outcome", "unknown"),
        ("event", "confirmed"),
    ]


@pytest.mark.slow
def test_what_an_answer_says_too_needs_no_correction(
    servicer: Browser, portal_service: Sandbox, supervisor: Browser
) -> None:
    databases.reject_inserts("audit_entry", OUTCOMES)
    submit(servicer, portal_service)
    databases.allow_inserts("audit_entry")
    intent, uuid = WriteIntent.objects.get(), kept_answers()[0]["uuid"]
    WriteIntent.objects.update(created_at=intent.created_at.replace(year=2020))
    resolve = f"{intent.get_absolute_url()}resolve/"
    typed = {"found": "yes", "uuid": uuid, "reason": "Told by Dana at the lender, 14:20"}
    assert supervisor.post(resolve, typed).status_code == 303
    resolution = Entry.objects.get(action="audit.resolve")
    assert f'href="{resolve}"' in page(supervisor, intent.get_absolute_url())
    call_command("save_answer", stdout=StringIO())
    assert f'href="{resolve}"' not in page(supervisor, intent.get_absolute_url())
    correction = {"found": "no", "reason": "Misread", "corrects": str(resolution.pk)}
    assert supervisor.post(resolve, correction).status_code == 303
    intent.refresh_from_db()
    assert (intent.state, intent.subject_uuid) == ("confirmed", uuid)
    assert not Entry.objects.filter(action="audit.correct").exists()


def test_the_offers_of_an_application_are_kept(servicer: Browser, portal_service: Sandbox) -> None:
    databases.reject_inserts("audit_entry", OUTCOMES)
    submit(servicer, portal_service)
    databases.allow_inserts("audit_entry")
    call_command("save_answer", stdout=StringIO())
    (sent,) = portal_service.world.store.all("loan_application")
    saved = json.loads(Application.objects.get().answer.body)
    assert [offer["uuid"] for offer in saved["offers"]] == [offer["uuid"] for offer in sent.body["offers"]]


@pytest.mark.slow
def test_the_file_holds_no_secrets(servicer: Browser, portal_service: Sandbox) -> None:
    editor = Editor(servicer, given.individual(portal_service))
    databases.reject_inserts("audit_entry", OUTCOMES)
    echoed = {"ssn": SSN, "dob": "1987/04/19", "credit_report_xml_gzip": "H4sIAAAA"}
    portal_service.fail_next("borrowers.update", changes=echoed)
    assert editor.send(TWICE, **WITH_SSN, **BORN).status_code == 503
    text = answers_file().read_bytes()
    assert editor.record.uuid.encode() in text
    secrets = (SSN, SSN.replace("-", ""), "1987/04/19", "1987-04-19", "H4sIAAAA")
    assert [secret for secret in secrets if secret.encode() in text] == []


def test_without_a_file_the_log_and_the_page_have_the_id(
    servicer: Browser, portal_service: Sandbox, capfd: pytest.CaptureFixture[str]
) -> None:
    answers_file().symlink_to("nowhere/at/all")
    databases.reject_inserts("audit_entry", OUTCOMES)
    shown = onboard(servicer, portal_service)
    (user,) = portal_service.world.users()
    assert user["uuid"] in shown.content.decode()
    lines = [json.loads(text) for text in capfd.readouterr().err.splitlines() if text.startswith("{")]
    assert (lines[-1]["uuid"], lines[-1]["operation"]) == (user["uuid"], "borrowers.create_commercial")
    assert "this line alone" in lines[-1]["message"]


@pytest.mark.slow
def test_an_incomplete_line_is_skipped(servicer: Browser, portal_service: Sandbox) -> None:
    answers_file().write_text('{"intent_id": "cut o')
    databases.reject_inserts("audit_entry", OUTCOMES)
    update(servicer, portal_service)
    databases.allow_inserts("audit_entry")
    assert len(kept_answers()) == 1
    call_command("save_answer", stdout=StringIO())
    assert WriteIntent.objects.get().state == "confirmed"


@pytest.mark.slow
def test_an_answer_of_another_database_stays(servicer: Browser, portal_service: Sandbox) -> None:
    databases.reject_inserts("audit_entry", OUTCOMES)
    update(servicer, portal_service)
    databases.allow_inserts("audit_entry")
    (line,) = kept_answers()
    answers_file().write_text(json.dumps(line | {"intent_id": "11111111-1111-4111-8111-111111111111"}) + "\n")
    with pytest.raises(CommandError, match="These changes aren’t in this database"):
        call_command("save_answer")
    assert len(kept_answers()) == 1


@pytest.mark.slow
def test_the_doctor_reports_unsaved_answers(
    servicer: Browser, portal_service: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    databases.reject_inserts("audit_entry", OUTCOMES)
    update(servicer, portal_service)
    databases.allow_inserts("audit_entry")
    with suppress(CommandError):
        call_command("doctor")
    uuid = kept_answers()[0]["uuid"]
    words = f"1 answer of changes is only in {answers_file()}, first {uuid}. Run manage.py save_answer."
    assert words in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.xdist_group("waiting")
@pytest.mark.parametrize(
    ("change", "operation"), [(onboard, "borrowers.create_commercial"), (update, "borrowers.update")]
)
def test_a_database_that_is_locked_when_the_answer_comes(
    servicer: Browser, portal_service: Sandbox, change: Callable[..., Any], operation: str
) -> None:
    portal_service.fail_next(operation, delay=1)

    def lock() -> None:
        """Lock the database once the service has the request, until after the page came."""
        while not writes_sent(portal_service):
            time.sleep(0.01)
        with databases.locked():
            has_come.wait(30)
        connection.close()

    has_come, locking = threading.Event(), threading.Thread(target=lock)
    locking.start()
    start = time.monotonic()
    shown = change(servicer, portal_service)
    assert time.monotonic() - start < 12
    has_come.set()
    locking.join()
    assert shown.status_code == 503
    assert "Done at the service, not saved here yet" in shown.content.decode()
    (line,) = kept_answers()
    call_command("save_answer", stdout=StringIO())
    assert_recorded(WriteIntent.objects.get(), line["uuid"], portal_service)
