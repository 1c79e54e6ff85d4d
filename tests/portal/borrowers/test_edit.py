"""A borrower's profile is changed by exactly what was checked, and the answer is held against it."""

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
from portal.registry import store
from portal.registry.models import Kind, Record, Source
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import browser_of, htmx
from tests.databases import everything
from tests.portal.borrowers.editor import (
    BORN,
    SSN,
    TWICE,
    UPDATE,
    WITH_SSN,
    Editor,
    fields,
    html,
    is_refused,
    phases,
    sent,
    text,
)

# --- What is sent ---


def test_one_changed_field_is_one_key_on_the_wire(editor: Editor, portal_service: Sandbox) -> None:
    assert editor.send(email="new@bakery.example").status_code == 303
    assert sent(portal_service) == {"email": "new@bakery.example"}
    assert portal_service.calls[-1].method == "PUT"


def test_a_part_of_the_address_sends_the_whole_of_it(editor: Editor, portal_service: Sandbox) -> None:
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
def test_another_notation_of_the_same_is_no_change(
    editor: Editor, same: dict[str, str], portal_service: Sandbox
) -> None:
    assert "No changes to send." in html(editor.check(**same))
    assert not portal_service.calls


def test_an_emptied_middle_name_is_sent_as_null(of_person: Editor, portal_service: Sandbox) -> None:
    page = html(of_person.check(middle_name=""))
    assert "Cleared: sent as null." in page
    of_person.send(middle_name="")
    assert sent(portal_service) == {"middle_name": None}


def test_a_name_that_breaks_the_pattern_is_left_alone(servicer: Browser, portal_service: Sandbox) -> None:
    editor = Editor(servicer, given.borrower(portal_service, first_name="AT&T Ümlaut 3 LLC"))
    assert "The service rejects this name on updates" in html(servicer.get(editor.url))
    assert editor.send(email="new@bakery.example").status_code == 303
    assert sent(portal_service) == {"email": "new@bakery.example"}


def test_an_address_that_breaks_the_rules_is_left_alone(servicer: Browser, portal_service: Sandbox) -> None:
    record = given.save_answer(
        portal_service.world.borrower() | {"address": {"line_1": None, "zip": "1", "city": "", "state": "Q"}}
    )
    assert Editor(servicer, record).check(email="new@bakery.example").status_code == 200


def test_date_of_birth_and_ssn_reach_the_service_as_they_were_typed(
    of_person: Editor, person: Record, portal_service: Sandbox
) -> None:
    of_person.send(TWICE, **BORN, **WITH_SSN)
    assert sent(portal_service).keys() == {"dob", "ssn"}
    assert sent(portal_service)["dob"] == "1987/04/19"
    assert portal_service.world.received_ssn(person.uuid) == "219099999"


def test_a_business_has_no_ssn_and_no_date_of_birth(editor: Editor, portal_service: Sandbox) -> None:
    assert "with_ssn" not in html(editor.browser.get(editor.url))
    editor.send(TWICE, email="new@bakery.example", dob="1987-04-19", **WITH_SSN)
    assert sent(portal_service) == {"email": "new@bakery.example"}


def test_reports_arrive_byte_for_byte(editor: Editor, borrower: Record, portal_service: Sandbox) -> None:
    xml, assets = '<?xml version="1.0"?><report é="1"/>'.encode(), b'{"a": [1.10]}\n'
    files = {
        "credit_report": SimpleUploadedFile("credit.xml", xml),
        "asset_report": SimpleUploadedFile("assets.json", assets),
    }
    page = editor.result(files, with_credit_report="on", with_asset_report="on")
    for content in (xml, assets):
        assert re.search(rf"{len(content):,} bytes, [\d,]+ after compression", page)
    assert sent(portal_service).keys() == {"credit_report_xml_gzip", "asset_report_json_gzip"}
    for field, content in (("credit_report_xml_gzip", xml), ("asset_report_json_gzip", assets)):
        received = portal_service.world.received_report(borrower.uuid, field)
        assert gzip.decompress(base64.b64decode(received or "")) == content


def only_known(uuid: str) -> Record:
    """A borrower of whom nothing was told."""
    item = store.Observation(kind=Kind.BORROWER, uuid=uuid, borrower_uuid=uuid, label="Maya")
    return store.save([item], source=Source.STAFF)[0]


def test_what_is_known_only_by_its_uuid_can_be_changed(servicer: Browser, portal_service: Sandbox) -> None:
    editor = Editor(servicer, only_known(portal_service.world.individual()["uuid"]))
    assert "Only the ID is on file." in html(servicer.get(editor.url))
    editor.send(email="maya@new.example")
    assert sent(portal_service) == {"email": "maya@new.example"}
    assert "with_ssn" in html(servicer.get(editor.url))


def test_what_turns_out_to_be_a_business_is_told_as_it_was_sent(
    servicer: Browser, portal_service: Sandbox
) -> None:
    editor = Editor(servicer, only_known(portal_service.world.borrower()["uuid"]))
    page = editor.result(last_name="Lindqvist", phone="5125550143")
    assert "Last name" in page
    assert "Sent: 2 confirmed" in page


# --- The check ---


def test_the_check_shows_now_and_new_word_by_word(editor: Editor, portal_service: Sandbox) -> None:
    page = html(editor.check(email="sales@harborstreetbakery.example", phone="5125550143"))
    assert '<span class="visually-hidden">removed: </span>office</del>' in page
    assert '<span class="visually-hidden">added: </span>sales</ins>' in page
    assert "2 changes" in page
    assert "Sent as 5125550143" in page
    assert "Send 2 changes" in page
    assert not portal_service.calls


def test_the_check_shows_the_masked_body_and_folds_what_is_not_sent(of_person: Editor) -> None:
    page = text(html(of_person.check(email="new@maya.example", **BORN)))
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
def test_a_reason_is_needed_for_name_and_address(
    editor: Editor, typed: dict[str, str], is_needed: bool
) -> None:
    answer = editor.send({"reason": " "}, **typed)
    assert answer.status_code == (422 if is_needed else 303)


def test_a_reason_is_needed_for_an_ssn(of_person: Editor, portal_service: Sandbox) -> None:
    page = is_refused(of_person.send(TWICE | {"reason": ""}, **WITH_SSN))
    assert "Enter a reason" in page
    assert not portal_service.calls


@pytest.mark.parametrize("reason", ["x" * 201, f"Took {SSN} from the form", "nul \0", b"half \xed\xa0\x80"])
def test_a_reason_that_cannot_be_kept_is_refused(
    editor: Editor, reason: Any, portal_service: Sandbox
) -> None:
    is_refused(editor.send({"reason": reason}, email="new@bakery.example"))
    assert not portal_service.calls


def test_nothing_changed_sends_nothing_and_says_so(editor: Editor, portal_service: Sandbox) -> None:
    assert "No changes to send." in html(editor.check())
    assert not portal_service.calls
    assert Entry.objects.get(action="borrowers.no_change").result == "no_change"
    assert not WriteIntent.objects.exists()


def test_back_to_edit_keeps_everything_typed(of_person: Editor) -> None:
    typed = {
        "email": "new@maya.example",
        "middle_name": "",
        "dob_month": "4",
        "dob_day": "19",
        "dob_year": "1987",
    }
    preview = of_person.checked(**typed, **WITH_SSN)
    back = fields(html(of_person.post(preview | {"reason": "Called in", **TWICE}, "edit")))
    assert back.items() >= (typed | WITH_SSN | {"reason": "Called in"}).items()
    assert SSN not in str(back)
    assert fields(html(of_person.post(back, "preview")))["reason"] == "Called in"


# --- The result ---


def test_the_result_confirms_what_came_back(editor: Editor) -> None:
    page = editor.result(email="new@bakery.example")
    assert "Confirmed" in page
    assert "Sent: 1 confirmed" in page
    assert "sd-altered" not in page


def test_what_the_service_altered_is_an_amber_row(editor: Editor, portal_service: Sandbox) -> None:
    portal_service.fail_next(UPDATE, changes={"email": "NEW@BAKERY.EXAMPLE"})
    page = editor.result(email="new@bakery.example", phone="5125550143")
    assert page.count('<tr class="sd-altered">') == 1
    assert "Sent: 1 confirmed, 1 changed by the service" in page
    assert '<span class="visually-hidden">added: </span>NEW</ins>' in page


def test_an_altered_city_is_told(editor: Editor, portal_service: Sandbox) -> None:
    address = {"line_1": "9 Harbor Street", "zip": "97401", "city": "EUGENE", "state": "OR"}
    portal_service.fail_next(UPDATE, changes={"address": address | {"country": "UNITED STATES"}})
    page = editor.result(line_1="9 Harbor Street")
    assert '<span class="visually-hidden">added: </span>EUGENE</ins>' in page
    assert "Changed by the service" in page


@pytest.mark.parametrize("phone", ["5125550143", "+15125550143", "1 (512) 555-0143"])
def test_the_same_phone_in_another_notation_is_confirmed(
    editor: Editor, portal_service: Sandbox, phone: str
) -> None:
    portal_service.fail_next(UPDATE, changes={"phone": phone})
    assert "1 confirmed" in editor.result(phone="512 555 0143")


def test_what_the_service_never_returns_is_told_as_such(of_person: Editor) -> None:
    page = of_person.result(TWICE, **WITH_SSN)
    assert "1 not returned" in page


@pytest.mark.parametrize("answered", [None, 7, ["x"], {"zip": 97401}])
def test_a_strange_answer_is_told_and_breaks_nothing(
    editor: Editor, portal_service: Sandbox, answered: Any
) -> None:
    portal_service.fail_next(UPDATE, changes={"address": answered, "email": answered})
    page = editor.result(email="new@bakery.example", line_2="Suite 4")
    assert "2 changed by the service" in page


def test_the_result_is_found_again_under_its_address(editor: Editor, supervisor: Browser) -> None:
    url = editor.send(email="new@bakery.example")["Location"]
    intent = WriteIntent.objects.get()
    assert url == f"{editor.url}?sent={intent.pk}"
    assert "1 confirmed" in html(supervisor.get(url))


def test_the_result_of_another_record_is_not_found(editor: Editor, of_person: Editor) -> None:
    url = editor.send(email="new@bakery.example")["Location"]
    assert editor.browser.get(url.replace(editor.url, of_person.url)).status_code == 404
    for other in ("x", "%00", "00000000-0000-4000-8000-000000000000"):
        assert editor.browser.get(f"{editor.url}?sent={other}").status_code == 404


def test_leaves_one_attempt_and_one_outcome_with_before_and_after(of_person: Editor) -> None:
    of_person.send(TWICE, email="new@maya.example", **BORN, **WITH_SSN)
    assert phases() == ["attempt", "outcome confirmed"]
    attempt = Entry.objects.get(action=UPDATE, phase="attempt")
    assert attempt.reason == "On the phone"
    assert attempt.changes == {
        "email": ["maya.lindqvist@example.com", "new@maya.example"],
        "dob": ["", "sent"],
        "ssn": ["", "sent"],
    }


def test_the_answer_becomes_the_copy(editor: Editor, borrower: Record) -> None:
    editor.send(first_name="Bay Bakery LLC")
    borrower.refresh_from_db()
    assert (borrower.label, borrower.source) == ("Bay Bakery LLC", Source.SERVICE)
    assert editor.open()["first_name"] == "Bay Bakery LLC"


# --- Roles, fragments, secrets ---


@pytest.mark.parametrize("role", [Role.VIEWER, Role.AUDITOR, Role.ADMIN])
def test_needs_a_role_that_lends(role: Role, borrower: Record, portal_service: Sandbox) -> None:
    browser = browser_of(role)
    url = Editor(browser, borrower).url
    assert browser.get(url).status_code == 403
    for action in ("preview", "send", "check", "measure", "edit"):
        assert browser.post(url, {"email": "new@bakery.example", "action": action}).status_code == 403
    assert not portal_service.calls


def test_needs_a_person(anonymous: Browser, borrower: Record) -> None:
    assert anonymous.get(Editor(anonymous, borrower).url)["Location"].startswith("/sign-in/")


def test_needs_the_token_of_the_form(borrower: Record, portal_service: Sandbox) -> None:
    browser = browser_of(Role.SERVICER, enforce_csrf_checks=True)
    editor = Editor(browser, borrower)
    form = editor.open()
    assert editor.post(form, "preview").status_code == 200
    assert editor.post(form | {"csrfmiddlewaretoken": "x"}, "preview").status_code == 403


def test_an_unknown_borrower_is_not_found(servicer: Browser) -> None:
    assert servicer.get("/borrowers/none/edit/").status_code == 404


def test_each_step_is_a_fragment_for_htmx(editor: Editor, borrower: Record) -> None:
    form = editor.open() | {"email": "new@bakery.example"}
    moved_form = form | {"version": "0" * 16}
    for typed, status in ((form, 200), (form | {"zip": "1"}, 422), (moved_form, 409)):
        answer = editor.post(typed, "preview", headers=htmx("edit-step"))
        assert answer.status_code == status
        assert html(answer).strip().startswith('<div class="sd-stack sd-edit" id="edit-step">')
        assert "<html" not in html(answer)


def test_one_field_in_a_dialog_is_the_same_flow(
    editor: Editor, borrower: Record, portal_service: Sandbox
) -> None:
    editor.url += "?field=phone"
    assert {"first_name", "email", "phone", "zip"} <= editor.open().keys()
    one = fields(html(editor.browser.get(editor.url, headers=htmx("dialog"))))
    assert one.keys() - {"csrfmiddlewaretoken"} == {"version", "reason", "phone"}

    def send(phone: str) -> str:
        page = html(editor.post(one | {"phone": phone}, "preview", headers=htmx("edit-step")))
        return editor.post(fields(page), "send")["Location"]

    assert send("5125550199") == f"/borrowers/{borrower.uuid}/"
    assert sent(portal_service) == {"phone": "5125550199"}
    assert phases() == ["attempt", "outcome confirmed"]
    portal_service.fail_next(UPDATE, changes={"phone": "5125550100"})
    one = fields(html(editor.browser.get(editor.url, headers=htmx("dialog"))))
    assert "?sent=" in send("5125550198")  # The service changed it: all three values are shown.


def test_a_field_is_checked_as_it_is_left(editor: Editor) -> None:
    headers = htmx("") | {"HX-Trigger-Name": "first_name"}
    page = html(editor.post(editor.open() | {"first_name": "AT&T"}, "check", headers=headers))
    assert "“&amp;” at position 3" in page
    assert page.count("sd-field ") == 1
    unchanged = html(editor.post(editor.open(), "check", headers=headers))
    assert "sd-note-bad" not in unchanged


def test_a_half_typed_day_is_left_in_peace(of_person: Editor) -> None:
    headers = htmx("") | {"HX-Trigger-Name": "dob_month"}
    answer = of_person.post(of_person.open() | {"dob_month": "4"}, "check", headers=headers)
    assert answer.status_code == 204


def test_a_profile_of_nulls_can_be_edited(servicer: Browser, portal_service: Sandbox) -> None:
    user = portal_service.world.borrower()
    nothing = {name: None for name in user if name not in ("uuid", "user_type")}
    editor = Editor(servicer, given.save_answer(user | nothing))
    assert editor.check(email="new@bakery.example").status_code == 200


@pytest.mark.django_db(transaction=True)
def test_an_ssn_is_nowhere_afterwards(
    of_person: Editor,
    portal_service: Sandbox,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    pages = [html(of_person.send({"ssn": SSN, "ssn_again": "1"}, **WITH_SSN))]
    for fault in ({"status": 422, "message": "no"}, {"cut_after_commit": True}, {"status": 500}):
        portal_service.fail_next(UPDATE, **fault)
        pages.append(html(of_person.send(TWICE | {"again": "on"}, **WITH_SSN)))
    pages.append(of_person.result(TWICE | {"again": "on"}, **WITH_SSN))
    said = "".join([*pages, caplog.text, *capfd.readouterr()]).encode()
    stored = everything()
    assert len(portal_service.calls) == 4
    assert [secret for secret in (SSN, "219099999", "219 09 9999") if secret.encode() in said + stored] == []
