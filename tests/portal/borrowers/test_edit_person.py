"""Editing a key person: the same review, result and audit trail as for a borrower."""

import json
from typing import Any

import pytest
from django.test import Client as Browser

from portal.accounts.roles import Role
from portal.audit.models import Entry, WriteIntent
from portal.records.models import Borrower, KeyPerson
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
    html_of_error,
    phases,
    sent,
    text,
)

UPDATE = "borrowers.update_key_person"


@pytest.fixture
def owner(portal_service: Sandbox) -> Borrower:
    return given.borrower(portal_service, key_people=[{"middle_name": "June"}, {"first_name": "Priya"}])


@pytest.fixture
def maya(owner: Borrower) -> KeyPerson:
    return KeyPerson.objects.get(borrower_uuid=owner.uuid, name__startswith="Maya")


@pytest.fixture
def maya_editor(servicer: Browser, maya: KeyPerson) -> Editor:
    return Editor(servicer, maya)


def test_only_the_title_and_ssn_are_sent(
    maya_editor: Editor, maya: KeyPerson, portal_service: Sandbox
) -> None:
    maya_editor.send(TWICE, title="DIRECTOR", **WITH_SSN)
    assert portal_service.calls[-1].path == f"/v1/users/{maya.borrower_uuid}/key_people/{maya.uuid}"
    assert sent(portal_service).keys() == {"title", "ssn"}
    assert sent(portal_service)["title"] == "DIRECTOR"
    assert portal_service.world.received_ssn(maya.uuid) == "219099999"


@pytest.mark.slow
def test_result_counts_confirmed_and_unreturned_values(maya_editor: Editor) -> None:
    page = maya_editor.result_page(TWICE, title="DIRECTOR", **BORN, **WITH_SSN)
    assert "Title updated; 2 not returned" in page


@pytest.mark.slow
def test_an_address_returned_without_empty_lines_is_confirmed(maya_editor: Editor) -> None:
    assert "updated" in maya_editor.result_page(city="Springfield")


@pytest.mark.slow
def test_result_highlights_a_title_changed_by_the_service(
    maya_editor: Editor, portal_service: Sandbox
) -> None:
    portal_service.fail_next(UPDATE, changes={"title": "BENEFICIARY"})
    page = maya_editor.result_page(title="DIRECTOR")
    assert '<tr class="sd-altered">' in page
    assert "added: </span>Beneficiary</ins>" in page


@pytest.mark.slow
def test_a_lowercase_title_is_the_same_title(maya_editor: Editor, portal_service: Sandbox) -> None:
    portal_service.fail_next(UPDATE, changes={"title": "director"})
    assert "Title updated" in maya_editor.result_page(title="DIRECTOR")
    assert "No changes to send." in html(maya_editor.check(title="DIRECTOR"))


@pytest.mark.slow
def test_a_field_missing_from_the_answer_shows_as_not_returned(
    maya_editor: Editor, maya: KeyPerson, portal_service: Sandbox
) -> None:
    answer = {name: value for name, value in json.loads(maya.answer.body).items() if name != "phone"}
    portal_service.fail_next(UPDATE, body=answer | {"email": "new@maya.example"}, commit=True)
    page = maya_editor.result_page(email="new@maya.example", phone="5125550143")
    assert "updated; 1 not returned" in page


@pytest.mark.slow
def test_an_unknown_title_on_file_does_not_block_other_changes(
    servicer: Browser, owner: Borrower, portal_service: Sandbox
) -> None:
    user = json.loads(owner.answer.body)
    user["key_people"][0]["title"] = "TREASURER"
    given.save_answer(user)
    editor = Editor(servicer, KeyPerson.objects.get(uuid=user["key_people"][0]["uuid"]))
    assert editor.open()["title"] == "TREASURER"
    editor.send(email="new@maya.example")
    assert sent(portal_service) == {"email": "new@maya.example"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ({"last_name": ""}, "Enter the last name"),
        ({"last_name": "Raman2"}, "digits (“2”)."),
        ({"first_name": "José"}, "write “e”"),
    ],
)
def test_a_rejected_name_is_shown_again_with_the_reason(
    maya_editor: Editor, typed: dict[str, str], words: str
) -> None:
    page = html_of_error(maya_editor.check(**typed))
    assert words in page
    assert fields(page).items() >= typed.items()


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ({"title": "TREASURER"}, "Choose an option from the list."),
        ({"dob": "2020-01-01"}, "This person is"),
    ],
)
def test_title_and_age_are_checked(maya_editor: Editor, typed: dict[str, str], words: str) -> None:
    assert words in html_of_error(maya_editor.check(**typed))


def test_a_key_person_has_no_reports(maya_editor: Editor, portal_service: Sandbox) -> None:
    assert "with_asset_report" not in maya_editor.open()
    assert "No changes to send." in html(maya_editor.check(with_asset_report="on"))


def test_a_stale_form_shows_all_three_values(maya_editor: Editor, owner: Borrower) -> None:
    form = maya_editor.open()
    user = json.loads(owner.answer.body)
    user["key_people"][0]["title"] = "BENEFICIARY"
    given.save_answer(user)
    read = text(html_of_error(maya_editor.post(form | {"title": "DIRECTOR"}, "preview"), 409))
    for title in ("Owner", "Beneficiary", "Director"):
        assert title in read


def test_audit_trail_names_the_key_person_and_borrower(maya_editor: Editor, owner: Borrower) -> None:
    maya_editor.send(TWICE, title="DIRECTOR", **WITH_SSN)
    assert phases() == ["attempt", "outcome confirmed"]
    attempt = Entry.objects.get(action=UPDATE, phase="attempt")
    assert attempt.subject_label == f"Maya June Lindqvist of {owner}"
    assert attempt.changes == {"title": ["Owner", "Director"], "ssn": ["", "sent"]}
    assert WriteIntent.objects.get().borrower_uuid == owner.uuid


@pytest.mark.slow
def test_two_clicks_send_once(maya_editor: Editor, portal_service: Sandbox) -> None:
    preview = maya_editor.review_fields(title="DIRECTOR") | {"reason": ""}
    first, second = (maya_editor.post(preview, "send") for _ in range(2))
    assert first["Location"] == second["Location"]
    assert len(portal_service.calls) == 1


def test_a_person_of_another_borrower_is_not_found(
    servicer: Browser, maya_editor: Editor, borrower: Borrower
) -> None:
    url = maya_editor.url.replace(maya_editor.url.split("/")[2], borrower.uuid)
    assert servicer.get(url).status_code == 404


@pytest.mark.parametrize("role", [Role.VIEWER, Role.AUDITOR, Role.ADMIN])
def test_other_roles_cannot_edit(role: Role, maya_editor: Editor, portal_service: Sandbox) -> None:
    browser = browser_of(role)
    assert browser.get(maya_editor.url).status_code == 403
    typed: dict[str, Any] = {"title": "DIRECTOR", "action": "preview"}
    assert browser.post(maya_editor.url, typed).status_code == 403
    assert not portal_service.calls
