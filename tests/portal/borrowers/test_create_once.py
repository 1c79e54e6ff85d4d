"""A new borrower is sent only once: what is stored, and what happens to its draft."""

import base64
import gzip
import io
from typing import Any

import pytest
from django.apps import apps
from django.test import Client as Browser

from portal.audit.models import Entry, WriteIntent
from portal.borrowers.models import Draft
from portal.records.models import KeyPerson, Kind
from servicing.sandbox import Sandbox
from tests.portal.borrowers.editor import phases
from tests.portal.borrowers.wizard import (
    BUSINESS,
    CREATE,
    EIN,
    PHONE_REJECTED,
    PRIYA,
    SIGNED,
    SSN,
    Wizard,
    html,
    html_of_error,
)

pytestmark = [pytest.mark.postgres, pytest.mark.slow]


def read_database() -> str:
    """Return every value of every table as one text."""
    rows = (row for model in apps.get_models() for row in model._default_manager.values_list())
    return "\n".join(map(str, rows))


def test_the_report_arrives_byte_for_byte(wizard: Wizard, sandbox: Sandbox) -> None:
    report = b'{"accounts": [1.10, "caf\xc3\xa9"]}\n'
    file = io.BytesIO(report)
    file.name = "assets.json"
    wizard.post("reports", {"asset_report": file})
    wizard.send()
    received = sandbox.world.received_report(sandbox.world.users()[0]["uuid"], "asset_report_json_gzip")
    assert gzip.decompress(base64.b64decode(received or "")) == report


def test_sending_saves_the_borrower_and_deletes_the_draft(wizard: Wizard) -> None:
    page = html(wizard.browser.get(wizard.send()["Location"]))
    assert "O&#x27;Neil &amp; Daughters, LLC was created." in page
    assert KeyPerson.objects.filter().count() == 2
    assert not Draft.objects.exists()


def test_sending_records_one_attempt_and_one_outcome(wizard: Wizard) -> None:
    wizard.send()
    assert phases(CREATE) == ["attempt", "outcome confirmed"]
    attempt = Entry.objects.get(action=CREATE, phase="attempt")
    assert attempt.subject_label == BUSINESS["first_name"]


def test_a_second_click_opens_the_borrower(wizard: Wizard, sandbox: Sandbox) -> None:
    typed = wizard.hidden_fields() | SIGNED
    first = wizard.post("review", typed)
    again = wizard.post("review", typed)
    assert (again.status_code, again["Location"]) == (303, first["Location"])
    assert len(sandbox.calls) == 1
    assert "Nothing was sent twice" in html(wizard.browser.get(again["Location"]))


def test_two_windows_send_once(wizard: Wizard, sandbox: Sandbox) -> None:
    first_window, second_window = wizard.hidden_fields(), wizard.hidden_fields()
    first = wizard.post("review", first_window | SIGNED)
    second = wizard.post("review", second_window | SIGNED)
    assert second["Location"] == first["Location"]
    assert len(sandbox.world.users()) == 1


def test_a_sent_draft_redirects_only_its_creator(
    wizard: Wizard, sandbox: Sandbox, supervisor: Browser
) -> None:
    sandbox.fail_next("borrowers.create_commercial", status=422)
    wizard.send()
    wizard.send()
    (user,) = sandbox.world.users()
    for answer in (
        *map(wizard.get, ("business", "review")),
        wizard.post("address", {}),
        wizard.post("review", {"submit_id": "\0"}),
    ):
        assert answer["Location"] == f"/borrowers/{user['uuid']}/"
    assert not Draft.objects.exists()
    assert "Draft not found" in html_of_error(supervisor.get(f"{wizard.url}review/"), 404)


def test_a_draft_being_sent_is_not_sent_again(wizard: Wizard, sandbox: Sandbox) -> None:
    typed = wizard.hidden_fields()
    intent = WriteIntent.objects.create(submit_id=typed["submit_id"], operation=CREATE, label="O'Neil")
    page = html_of_error(wizard.post("review", typed | SIGNED), 409)
    assert intent.get_absolute_url() in page
    assert not sandbox.world.users()


def test_a_draft_confirmed_later_redirects_to_the_borrower(wizard: Wizard) -> None:
    WriteIntent.objects.create(
        submit_id=wizard.hidden_fields()["submit_id"],
        operation=CREATE,
        state=WriteIntent.State.CONFIRMED,
        label="O'Neil",
        subject_kind=Kind.BORROWER,
        subject_uuid="b-1",
    )
    assert wizard.get("review")["Location"] == "/borrowers/b-1/"
    assert not Draft.objects.exists()


def test_an_unknown_outcome_is_never_sent_again(wizard: Wizard, sandbox: Sandbox) -> None:
    sandbox.fail_next(CREATE, cut_after_commit=True)
    typed = wizard.hidden_fields() | SIGNED
    lost = wizard.post("review", typed)
    intent = WriteIntent.objects.get()
    assert (lost.status_code, lost["Location"]) == (303, intent.get_absolute_url())
    assert intent.get_absolute_url() in html_of_error(wizard.post("review", typed), 409)
    assert intent.get_absolute_url() in html(wizard.get("review"))
    assert len(sandbox.world.users()) == 1
    assert phases(CREATE) == ["attempt", "outcome unknown"]


def test_an_unknown_outcome_keeps_the_draft(wizard: Wizard, sandbox: Sandbox) -> None:
    sandbox.fail_next(CREATE, cut_after_commit=True)
    wizard.send()
    page = html(wizard.get("review"))
    assert "This draft was sent. Its outcome is unknown" in page
    assert "elena@oneil.example" in page
    assert 'name="ein"' not in page


def test_a_duplicate_of_an_unknown_outcome_is_not_sent(wizard: Wizard, sandbox: Sandbox) -> None:
    sandbox.fail_next(CREATE, cut_after_commit=True)
    wizard.send()
    page = html_of_error(Wizard(wizard.browser).fill(PRIYA).send(), 409)
    assert "The same borrower is already being created" in page
    assert WriteIntent.objects.get().get_absolute_url() in page
    assert len(sandbox.world.users()) == 1


def test_duplicates_ignore_case_and_spaces(wizard: Wizard, sandbox: Sandbox) -> None:
    sandbox.fail_next(CREATE, cut_after_commit=True)
    wizard.send()
    spaced = Wizard(wizard.browser).fill(first_name="O'NEIL  & Daughters,  LLC", email="Office@ONEIL.example")
    html_of_error(spaced.send(), 409)
    assert len(sandbox.world.users()) == 1


def test_a_draft_resolved_as_not_sent_can_be_sent_again(wizard: Wizard, sandbox: Sandbox) -> None:
    sandbox.fail_next(CREATE, cut_before=True)
    wizard.send()
    WriteIntent.objects.update(state=WriteIntent.State.NOT_SENT)
    assert wizard.send().status_code == 303
    assert len(sandbox.world.users()) == 1


@pytest.mark.parametrize(
    "fault",
    [
        {},
        PHONE_REJECTED,
        {"cut_after_commit": True},
        {"html": True},
        {"status": 500, "message": f"EIN {EIN}"},
    ],
)
def test_ein_and_ssn_are_never_stored_logged_or_shown(
    fault: dict[str, Any], wizard: Wizard, sandbox: Sandbox, caplog: pytest.LogCaptureFixture
) -> None:
    sandbox.fail_next(CREATE, **fault)
    answer = wizard.send({"ssn_0": SSN, "ssn_0_again": "219099999", "reason": "x"})
    output = "\n".join([read_database(), caplog.text, html(answer), str(answer.headers)])
    for secret in (EIN, "471029384", SSN, "219099999"):
        assert secret not in output
