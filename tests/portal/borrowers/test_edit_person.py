"""A key person is changed under their borrower, with the same check and the same proof."""

import json
from typing import Any

import pytest
from django.test import Client as Browser

from portal.accounts.roles import Role
from portal.audit.models import Entry, WriteIntent
from portal.registry.models import Kind, Record
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import browser_of
from tests.portal.borrowers.editor import (
    BORN,
    TWICE,
    WITH_SSN,
    Editor,
    fields,
    html,
    is_refused,
    phases,
    sent,
    text,
)

UPDATE = "borrowers.update_key_person"


@pytest.fixture
def owner(portal_service: Sandbox) -> Record:
    return given.borrower(portal_service, key_people=[{"middle_name": "June"}, {"first_name": "Priya"}])


@pytest.fixture
def maya(owner: Record) -> Record:
    return Record.objects.get(kind=Kind.KEY_PERSON, borrower_uuid=owner.uuid, label__startswith="Maya")


@pytest.fixture
def of_maya(servicer: Browser, maya: Record) -> Editor:
    return Editor(servicer, maya)


def test_a_title_and_an_ssn_are_sent_and_nothing_else(
    of_maya: Editor, maya: Record, portal_service: Sandbox
) -> None:
    of_maya.send(TWICE, title="DIRECTOR", **WITH_SSN)
    assert portal_service.calls[-1].path == f"/v1/users/{maya.borrower_uuid}/key_people/{maya.uuid}"
    assert sent(portal_service).keys() == {"title", "ssn"}
    assert sent(portal_service)["title"] == "DIRECTOR"
    assert portal_service.world.received_ssn(maya.uuid) == "219099999"


def test_the_result_tells_what_came_back(of_maya: Editor) -> None:
    page = of_maya.result(TWICE, title="DIRECTOR", **BORN, **WITH_SSN)
    assert "Sent: 1 confirmed, 2 not returned" in page


def test_an_address_that_comes_back_without_its_empty_lines_is_confirmed(of_maya: Editor) -> None:
    assert "Sent: 1 confirmed" in of_maya.result(city="Springfield")


def test_what_the_service_altered_is_an_amber_row(of_maya: Editor, portal_service: Sandbox) -> None:
    portal_service.fail_next(UPDATE, changes={"title": "BENEFICIARY"})
    page = of_maya.result(title="DIRECTOR")
    assert '<tr class="sd-altered">' in page
    assert "added: </span>Beneficiary</ins>" in page


def test_a_title_in_small_letters_is_the_same_title(of_maya: Editor, portal_service: Sandbox) -> None:
    portal_service.fail_next(UPDATE, changes={"title": "director"})
    assert "1 confirmed" in of_maya.result(title="DIRECTOR")
    assert "No changes to send." in html(of_maya.check(title="DIRECTOR"))


def test_a_field_that_is_missing_in_the_answer_is_not_returned(
    of_maya: Editor, maya: Record, portal_service: Sandbox
) -> None:
    answer = {name: value for name, value in json.loads(maya.answer).items() if name != "phone"}
    portal_service.fail_next(UPDATE, body=answer | {"email": "new@maya.example"}, commit=True)
    page = of_maya.result(email="new@maya.example", phone="5125550143")
    assert "Sent: 1 confirmed, 1 not returned" in page


def test_a_title_nobody_heard_of_is_left_alone(
    servicer: Browser, owner: Record, portal_service: Sandbox
) -> None:
    user = json.loads(owner.answer)
    user["key_people"][0]["title"] = "TREASURER"
    given.save_answer(user)
    editor = Editor(servicer, Record.objects.get(uuid=user["key_people"][0]["uuid"]))
    assert editor.open()["title"] == "TREASURER"
    editor.send(email="new@maya.example")
    assert sent(portal_service) == {"email": "new@maya.example"}


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ({"last_name": ""}, "field is required"),
        ({"last_name": "Raman2"}, "“2” at position 6"),
        ({"first_name": "José"}, "write “e”"),
    ],
)
def test_a_name_that_is_refused_is_kept_with_the_reason(
    of_maya: Editor, typed: dict[str, str], words: str
) -> None:
    page = is_refused(of_maya.check(**typed))
    assert words in page
    assert fields(page).items() >= typed.items()


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ({"title": "TREASURER"}, "Choose an option from the list."),
        ({"dob": "2020-01-01"}, "This person is"),
    ],
)
def test_title_and_age_are_checked(of_maya: Editor, typed: dict[str, str], words: str) -> None:
    assert words in is_refused(of_maya.check(**typed))


def test_there_are_no_reports_of_a_key_person(of_maya: Editor, portal_service: Sandbox) -> None:
    assert "with_asset_report" not in of_maya.open()
    assert "No changes to send." in html(of_maya.check(with_asset_report="on"))


def test_a_stale_form_is_refused_with_all_three_values(of_maya: Editor, owner: Record) -> None:
    form = of_maya.open()
    user = json.loads(owner.answer)
    user["key_people"][0]["title"] = "BENEFICIARY"
    given.save_answer(user)
    read = text(is_refused(of_maya.post(form | {"title": "DIRECTOR"}, "preview"), 409))
    for title in ("Owner", "Beneficiary", "Director"):
        assert title in read


def test_the_trail_says_whose_key_person_was_changed(of_maya: Editor, owner: Record) -> None:
    of_maya.send(TWICE, title="DIRECTOR", **WITH_SSN)
    assert phases() == ["attempt", "outcome confirmed"]
    attempt = Entry.objects.get(action=UPDATE, phase="attempt")
    assert attempt.subject_label == f"Maya June Lindqvist of {owner}"
    assert attempt.changes == {"title": ["Owner", "Director"], "ssn": ["", "sent"]}
    assert WriteIntent.objects.get().borrower_uuid == owner.uuid


def test_two_clicks_send_once(of_maya: Editor, portal_service: Sandbox) -> None:
    preview = of_maya.checked(title="DIRECTOR") | {"reason": ""}
    first, second = (of_maya.post(preview, "send") for _ in range(2))
    assert first["Location"] == second["Location"]
    assert len(portal_service.calls) == 1


def test_a_person_of_another_borrower_is_not_found(
    servicer: Browser, of_maya: Editor, borrower: Record
) -> None:
    url = of_maya.url.replace(of_maya.url.split("/")[2], borrower.uuid)
    assert servicer.get(url).status_code == 404


@pytest.mark.parametrize("role", [Role.VIEWER, Role.AUDITOR, Role.ADMIN])
def test_needs_a_role_that_lends(role: Role, of_maya: Editor, portal_service: Sandbox) -> None:
    browser = browser_of(role)
    assert browser.get(of_maya.url).status_code == 403
    typed: dict[str, Any] = {"title": "DIRECTOR", "action": "preview"}
    assert browser.post(of_maya.url, typed).status_code == 403
    assert not portal_service.calls
