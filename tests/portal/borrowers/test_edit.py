"""Editing a borrower's profile sends only the reviewed changes and compares them with the answer."""

import base64
import gzip
import logging
import re
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client as Browser

from portal.accounts.roles import Role
from portal.audit.models import Entry, WriteIntent
from portal.records import store
from portal.records.models import Account, Borrower, Kind, Source
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import browser_of, htmx
from tests.databases import stored_bytes
from tests.portal.borrowers.editor import (
    BORN,
    SSN,
    TWICE,
    UPDATE,
    WITH_SSN,
    Editor,
    fields,
    html,
    html_of_error,
    phases,
    sent,
    text,
)

pytestmark = pytest.mark.slow

# --- What is sent ---


def test_only_the_changed_field_is_sent(editor: Editor, portal_service: Sandbox) -> None:
    assert editor.send(email="new@bakery.example").status_code == 303
    assert sent(portal_service) == {"email": "new@bakery.example"}
    assert portal_service.calls[-1].method == "PUT"


def test_an_address_change_sends_the_whole_address(editor: Editor, portal_service: Sandbox) -> None:
    editor.send(line_1="9 Harbor Street")
    assert sent(portal_service).keys() == {"address"}
    assert sent(portal_service)["address"] == {
        "line_1": "9 Harbor Street",
        "line_2": None,
        "line_3": None,
        "zip": "97401",
        "city": "Eugene",
        "state": "OR",
        "country": "UNITED STATES",
    }


def test_a_phone_is_sent_as_ten_digits(editor: Editor, portal_service: Sandbox) -> None:
    editor.send(phone="+1 512.555.0143")
    assert sent(portal_service) == {"phone": "5125550143"}


@pytest.mark.parametrize("same", [{"phone": "541-555-0178"}, {"state": "Oregon"}, {"city": " Eugene "}])
def test_the_same_value_in_another_format_is_no_change(
    editor: Editor, same: dict[str, str], portal_service: Sandbox
) -> None:
    assert "No changes to send." in html(editor.check(**same))
    assert not portal_service.calls


def test_a_cleared_middle_name_is_sent_as_null(person_editor: Editor, portal_service: Sandbox) -> None:
    page = html(person_editor.check(middle_name=""))
    assert "Cleared: sent as null." in page
    person_editor.send(middle_name="")
    assert sent(portal_service) == {"middle_name": None}


def test_an_invalid_name_on_file_does_not_block_other_changes(
    servicer: Browser, portal_service: Sandbox
) -> None:
    editor = Editor(servicer, given.borrower(portal_service, first_name="AT&T Ümlaut 3 LLC"))
    assert "The service rejects this name on updates" in html(servicer.get(editor.url))
    assert editor.send(email="new@bakery.example").status_code == 303
    assert sent(portal_service) == {"email": "new@bakery.example"}


def test_an_invalid_address_on_file_does_not_block_other_changes(
    servicer: Browser, portal_service: Sandbox
) -> None:
    record = given.save_answer(
        portal_service.world.borrower() | {"address": {"line_1": None, "zip": "1", "city": "", "state": "Q"}}
    )
    assert Editor(servicer, record).check(email="new@bakery.example").status_code == 200


def test_date_of_birth_and_ssn_reach_the_service(
    person_editor: Editor, person: Account, portal_service: Sandbox
) -> None:
    person_editor.send(TWICE, **BORN, **WITH_SSN)
    assert sent(portal_service).keys() == {"dob", "ssn"}
    assert sent(portal_service)["dob"] == "1987/04/19"
    assert portal_service.world.received_ssn(person.uuid) == "219099999"


def test_a_business_has_no_ssn_or_date_of_birth(editor: Editor, portal_service: Sandbox) -> None:
    assert "with_ssn" not in html(editor.browser.get(editor.url))
    editor.send(TWICE, email="new@bakery.example", dob="1987-04-19", **WITH_SSN)
    assert sent(portal_service) == {"email": "new@bakery.example"}


def test_reports_arrive_byte_for_byte(editor: Editor, borrower: Borrower, portal_service: Sandbox) -> None:
    xml, assets = '<?xml version="1.0"?><report é="1"/>'.encode(), b'{"a": [1.10]}\n'
    files = {
        "credit_report": SimpleUploadedFile("credit.xml", xml),
        "asset_report": SimpleUploadedFile("assets.json", assets),
    }
    page = editor.result_page(files, with_credit_report="on", with_asset_report="on")
    for content in (xml, assets):
        assert re.search(rf"{len(content):,} bytes, [\d,]+ after compression", page)
    assert sent(portal_service).keys() == {"credit_report_xml_gzip", "asset_report_json_gzip"}
    for field, content in (("credit_report_xml_gzip", xml), ("asset_report_json_gzip", assets)):
        received = portal_service.world.received_report(borrower.uuid, field)
        assert gzip.decompress(base64.b64decode(received or "")) == content


def save_id_only(uuid: str) -> Account:
    """Save a borrower without a profile: only the ID and a name."""
    item = store.Observation(kind=Kind.BORROWER, uuid=uuid, borrower_uuid=uuid, label="Maya")
    return store.save([item], source=Source.STAFF)[0]


def test_a_borrower_with_only_an_id_on_file_can_be_edited(servicer: Browser, portal_service: Sandbox) -> None:
    editor = Editor(servicer, save_id_only(portal_service.world.individual()["uuid"]))
    assert "Only the ID is on file." in html(servicer.get(editor.url))
    editor.send(email="maya@new.example")
    assert sent(portal_service) == {"email": "maya@new.example"}
    assert "with_ssn" in html(servicer.get(editor.url))


def test_result_shows_the_last_name_sent_for_a_business(servicer: Browser, portal_service: Sandbox) -> None:
    editor = Editor(servicer, save_id_only(portal_service.world.borrower()["uuid"]))
    page = editor.result_page(last_name="Lindqvist", phone="5125550143")
    assert "Last name" in page
    assert "Last name, Phone updated" in page


# --- The review ---


def test_review_highlights_changed_words(editor: Editor, portal_service: Sandbox) -> None:
    page = html(editor.check(email="sales@harborstreetbakery.example", phone="5125550143"))
    assert '<span class="visually-hidden">removed: </span>office</del>' in page
    assert '<span class="visually-hidden">added: </span>sales</ins>' in page
    assert "2 changes" in page
    assert "Send 2 changes" in page
    assert not portal_service.calls


def test_review_masks_the_body_and_counts_unchanged_fields(person_editor: Editor) -> None:
    page = text(html(person_editor.check(email="new@maya.example", **BORN)))
    assert '{ "email" : "new@maya.example" , "dob" : "[hidden]" }' in page
    assert "Apr 19, 1987" in page
    assert "5 unchanged fields" in page


@pytest.mark.parametrize(
    ("typed", "is_needed"),
    [
        ({"first_name": "Bay Bakery LLC"}, True),
        ({"line_2": "Suite 4"}, True),
        ({"email": "a@b.example"}, False),
    ],
)
def test_name_and_address_changes_require_a_reason(
    editor: Editor, typed: dict[str, str], is_needed: bool
) -> None:
    answer = editor.send({"reason": " "}, **typed)
    assert answer.status_code == (422 if is_needed else 303)


def test_an_ssn_requires_a_reason(person_editor: Editor, portal_service: Sandbox) -> None:
    page = html_of_error(person_editor.send(TWICE | {"reason": ""}, **WITH_SSN))
    assert "Enter a reason" in page
    assert not portal_service.calls


@pytest.mark.parametrize("reason", ["x" * 201, f"Took {SSN} from the form", "nul \0", b"half \xed\xa0\x80"])
def test_an_invalid_reason_is_rejected(editor: Editor, reason: Any, portal_service: Sandbox) -> None:
    html_of_error(editor.send({"reason": reason}, email="new@bakery.example"))
    assert not portal_service.calls


def test_a_form_without_changes_is_not_sent(editor: Editor, portal_service: Sandbox) -> None:
    assert "No changes to send." in html(editor.check())
    assert not portal_service.calls
    assert Entry.objects.get(action="borrowers.no_change").result == "no_change"
    assert not WriteIntent.objects.exists()


def test_an_error_asks_again_for_the_ssn(person_editor: Editor) -> None:
    page = html_of_error(person_editor.send(TWICE | {"reason": ""}, **WITH_SSN))
    assert "Fix 3 fields. Nothing was sent." in page
    assert 'href="#id_ssn">SSN: This was cleared. Enter it again.</a>' in page


def test_going_back_keeps_all_input_but_the_ssn(person_editor: Editor) -> None:
    typed = {
        "email": "new@maya.example",
        "middle_name": "",
        "dob_month": "4",
        "dob_day": "19",
        "dob_year": "1987",
    }
    preview = person_editor.review_fields(**typed, **WITH_SSN)
    back = fields(html(person_editor.post(preview | {"reason": "Called in", **TWICE}, "edit")))
    assert back.items() >= (typed | WITH_SSN | {"reason": "Called in"}).items()
    assert SSN not in str(back)
    assert fields(html(person_editor.post(back, "preview")))["reason"] == "Called in"


# --- The result ---


def test_result_shows_a_confirmed_change(editor: Editor) -> None:
    page = editor.result_page(email="new@bakery.example")
    assert "Confirmed" in page
    assert "Email updated" in page
    assert "sd-altered" not in page


def test_result_highlights_a_value_changed_by_the_service(editor: Editor, portal_service: Sandbox) -> None:
    portal_service.fail_next(UPDATE, changes={"email": "NEW@BAKERY.EXAMPLE"})
    page = editor.result_page(email="new@bakery.example", phone="5125550143")
    assert page.count('<tr class="sd-altered">') == 1
    assert "updated; 1 changed by the service" in page
    assert '<span class="visually-hidden">added: </span>NEW</ins>' in page


def test_result_shows_a_city_changed_by_the_service(editor: Editor, portal_service: Sandbox) -> None:
    address = {"line_1": "9 Harbor Street", "zip": "97401", "city": "EUGENE", "state": "OR"}
    portal_service.fail_next(UPDATE, changes={"address": address | {"country": "UNITED STATES"}})
    page = editor.result_page(line_1="9 Harbor Street")
    assert '<span class="visually-hidden">added: </span>EUGENE</ins>' in page
    assert "Changed by the service" in page


@pytest.mark.parametrize("phone", ["5125550143", "+15125550143", "1 (512) 555-0143"])
def test_a_phone_returned_in_another_format_is_confirmed(
    editor: Editor, portal_service: Sandbox, phone: str
) -> None:
    portal_service.fail_next(UPDATE, changes={"phone": phone})
    assert " updated" in editor.result_page(phone="512 555 0143")


def test_result_shows_an_ssn_as_not_returned(person_editor: Editor) -> None:
    page = person_editor.result_page(TWICE, **WITH_SSN)
    assert "1 not returned" in page


@pytest.mark.parametrize("answered", [None, 7, ["x"], {"zip": 97401}])
def test_result_shows_malformed_values_as_changed(
    editor: Editor, portal_service: Sandbox, answered: Any
) -> None:
    portal_service.fail_next(UPDATE, changes={"address": answered, "email": answered})
    page = editor.result_page(email="new@bakery.example", line_2="Suite 4")
    assert "2 changed by the service" in page


def test_another_user_can_open_the_result_url(editor: Editor, supervisor: Browser) -> None:
    url = editor.send(email="new@bakery.example")["Location"]
    intent = WriteIntent.objects.get()
    assert url == f"{editor.url}?sent={intent.pk}"
    assert " updated" in html(supervisor.get(url))


def test_the_result_of_another_record_is_not_found(editor: Editor, person_editor: Editor) -> None:
    url = editor.send(email="new@bakery.example")["Location"]
    assert editor.browser.get(url.replace(editor.url, person_editor.url)).status_code == 404
    for other in ("x", "%00", "00000000-0000-4000-8000-000000000000"):
        assert editor.browser.get(f"{editor.url}?sent={other}").status_code == 404


def test_audit_trail_records_attempt_outcome_and_changes(person_editor: Editor) -> None:
    person_editor.send(TWICE, email="new@maya.example", **BORN, **WITH_SSN)
    assert phases() == ["attempt", "outcome confirmed"]
    attempt = Entry.objects.get(action=UPDATE, phase="attempt")
    assert attempt.reason == "On the phone"
    assert attempt.changes == {
        "email": ["maya.lindqvist@example.com", "new@maya.example"],
        "dob": ["", "sent"],
        "ssn": ["", "sent"],
    }


def test_the_answer_becomes_the_saved_copy(editor: Editor, borrower: Borrower) -> None:
    editor.send(first_name="Bay Bakery LLC")
    borrower.refresh_from_db()
    assert (borrower.label, borrower.answer.source) == ("Bay Bakery LLC", Source.SERVICE)
    assert editor.open()["first_name"] == "Bay Bakery LLC"


# --- Roles, fragments, secrets ---


@pytest.mark.parametrize("role", [Role.VIEWER, Role.AUDITOR, Role.ADMIN])
def test_other_roles_cannot_edit(role: Role, borrower: Borrower, portal_service: Sandbox) -> None:
    browser = browser_of(role)
    url = Editor(browser, borrower).url
    assert browser.get(url).status_code == 403
    for action in ("preview", "send", "check", "measure", "edit"):
        assert browser.post(url, {"email": "new@bakery.example", "action": action}).status_code == 403
    assert not portal_service.calls


def test_editing_requires_sign_in(anonymous: Browser, borrower: Borrower) -> None:
    assert anonymous.get(Editor(anonymous, borrower).url)["Location"].startswith("/sign-in/")


def test_editing_requires_a_csrf_token(borrower: Borrower, portal_service: Sandbox) -> None:
    browser = browser_of(Role.SERVICER, enforce_csrf_checks=True)
    editor = Editor(browser, borrower)
    form = editor.open()
    assert editor.post(form, "preview").status_code == 200
    assert editor.post(form | {"csrfmiddlewaretoken": "x"}, "preview").status_code == 403


def test_an_unknown_borrower_is_not_found(servicer: Browser) -> None:
    assert servicer.get("/borrowers/none/edit/").status_code == 404


def test_each_step_is_an_htmx_fragment(editor: Editor, borrower: Borrower) -> None:
    form = editor.open() | {"email": "new@bakery.example"}
    stale_form = form | {"version": "0" * 16}
    for typed, status in ((form, 200), (form | {"zip": "1"}, 422), (stale_form, 409)):
        answer = editor.post(typed, "preview", headers=htmx("edit-step"))
        assert answer.status_code == status
        assert html(answer).strip().startswith('<div class="sd-stack sd-edit" id="edit-step">')
        assert "<html" not in html(answer)


def test_one_field_can_be_edited_in_a_dialog(
    editor: Editor, borrower: Borrower, portal_service: Sandbox
) -> None:
    editor.url += "?field=phone"
    assert {"first_name", "email", "phone", "zip"} <= editor.open().keys()
    dialog = fields(html(editor.browser.get(editor.url, headers=htmx("dialog"))))
    assert dialog.keys() - {"csrfmiddlewaretoken"} == {"version", "reason", "phone"}

    def send(phone: str) -> str:
        page = html(editor.post(dialog | {"phone": phone}, "preview", headers=htmx("edit-step")))
        return editor.post(fields(page), "send")["Location"]

    assert send("5125550199") == f"/borrowers/{borrower.uuid}/"
    assert sent(portal_service) == {"phone": "5125550199"}
    assert phases() == ["attempt", "outcome confirmed"]
    portal_service.fail_next(UPDATE, changes={"phone": "5125550100"})
    dialog = fields(html(editor.browser.get(editor.url, headers=htmx("dialog"))))
    # The service changed the phone, so the result page opens.
    assert "?sent=" in send("5125550198")


def test_leaving_a_changed_field_checks_it(editor: Editor) -> None:
    headers = htmx("") | {"HX-Trigger-Name": "first_name"}
    page = html(editor.post(editor.open() | {"first_name": "AT&T"}, "check", headers=headers))
    assert "“&amp;” at position 3" in page
    assert page.count("sd-field ") == 1
    unchanged = html(editor.post(editor.open(), "check", headers=headers))
    assert "sd-note-bad" not in unchanged


def test_an_incomplete_date_is_not_checked(person_editor: Editor) -> None:
    headers = htmx("") | {"HX-Trigger-Name": "dob_month"}
    answer = person_editor.post(person_editor.open() | {"dob_month": "4"}, "check", headers=headers)
    assert answer.status_code == 204


def test_a_profile_of_nulls_can_be_edited(servicer: Browser, portal_service: Sandbox) -> None:
    user = portal_service.world.borrower()
    nulls = {name: None for name in user if name not in ("uuid", "user_type")}
    editor = Editor(servicer, given.save_answer(user | nulls))
    assert editor.check(email="new@bakery.example").status_code == 200


@pytest.mark.django_db(transaction=True)
def test_an_ssn_is_never_stored_logged_or_shown(
    person_editor: Editor,
    portal_service: Sandbox,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    pages = [html(person_editor.send({"ssn": SSN, "ssn_again": "1"}, **WITH_SSN))]
    for fault in ({"status": 422, "message": "no"}, {"cut_after_commit": True}, {"status": 500}):
        portal_service.fail_next(UPDATE, **fault)
        pages.append(html(person_editor.send(TWICE | {"again": "on"}, **WITH_SSN)))
    pages.append(person_editor.result_page(TWICE | {"again": "on"}, **WITH_SSN))
    output = "".join([*pages, caplog.text, *capfd.readouterr()]).encode()
    stored = stored_bytes()
    assert len(portal_service.calls) == 4
    assert [
        secret for secret in (SSN, "219099999", "219 09 9999") if secret.encode() in output + stored
    ] == []
