"""Invalid or hostile input and uploads on the profile form are rejected with a message."""

import re
from typing import Any

import pytest
import time_machine
from django.conf import LazySettings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client as Browser
from hypothesis import HealthCheck
from hypothesis import given as for_any
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from servicing import rules
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import htmx
from tests.portal.borrowers.editor import SSN, WITH_SSN, Editor, fields, html, html_of_error

BILLION_LAUGHS = (
    b'<!DOCTYPE a [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;">]><a>&c;</a>'
)


def test_all_errors_are_shown_at_once(editor: Editor, portal_service: Sandbox) -> None:
    invalid = {"first_name": "AT&T", "email": "x", "phone": "1", "zip": "99999"}
    page = html_of_error(editor.check(**invalid))
    assert "Fix 4 fields. Nothing was sent." in page
    assert "“&amp;” at position 3 isn’t allowed; write “and”." in page
    assert fields(page).items() >= invalid.items()


@pytest.mark.slow
@pytest.mark.parametrize("hostile", ["x" * 10_000, "a\0b", b"a\xed\xa0\x80", b"\xff\xfe", "\u202e"])
@pytest.mark.parametrize("name", ["first_name", "email", "phone", "line_1", "city", "state", "zip"])
def test_hostile_text_is_rejected(editor: Editor, name: str, hostile: Any, portal_service: Sandbox) -> None:
    html_of_error(editor.check(**{name: hostile}))
    assert not portal_service.calls


@pytest.mark.slow
@pytest.mark.parametrize("name", ["version", "seen", "choice-email", "reason"])
@pytest.mark.parametrize("hostile", ["x" * 10_000, "a\0b", b"\xed\xa0\x80", "%"])
def test_hostile_hidden_fields_cause_no_server_error(editor: Editor, name: str, hostile: Any) -> None:
    assert editor.check(email="new@bakery.example", **{name: hostile}).status_code in (200, 409, 422)


@pytest.mark.slow
@hypothesis_settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@for_any(data=st.data())
def test_random_input_causes_no_server_error(person_editor: Editor, data: st.DataObject) -> None:
    texts = st.text(st.characters(codec="utf-8"), max_size=60)
    strange = texts | st.sampled_from(["x" * 10_000, b"\xed\xa0\x80", "\0", "2024-02-30", "on"])
    names = [*person_editor.open(), "dob", "dob_month", "dob_day", "dob_year", "with_ssn", "seen", "action"]
    typed = data.draw(st.dictionaries(st.sampled_from(names), strange, max_size=6))
    form = person_editor.open() | typed
    answer = person_editor.post(form, form.get("action", "preview"))
    assert answer.status_code in (200, 204, 409, 422)


@pytest.mark.slow
@hypothesis_settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@for_any(data=st.data())
def test_any_profile_from_the_service_can_be_edited(
    servicer: Browser, portal_service: Sandbox, data: st.DataObject
) -> None:
    texts = st.text(st.characters(codec="utf-8"), max_size=30)
    strange = st.none() | texts | st.integers() | st.just("x" * 5_000) | st.lists(texts, max_size=2)
    user = portal_service.world.individual()
    names = st.sampled_from([name for name in user if name != "uuid"])
    address = st.dictionaries(st.sampled_from([*user["address"]]), strange)
    changes = data.draw(st.dictionaries(names, strange) | st.fixed_dictionaries({"address": address}))
    editor = Editor(servicer, given.save_answer(user | changes))
    assert "No changes to send." in html(editor.check())
    assert editor.check(email="new@maya.example").status_code == 200


@pytest.mark.parametrize(
    ("day", "words"),
    [
        (("2", "30", "1987"), "That date doesn’t exist"),
        (("4", "", "1987"), "Enter month, day and year"),
        (("4", "19", "2035"), "is in the future"),
        (("4", "19", "1887"), "is before 1900"),
    ],
)
def test_an_invalid_date_of_birth_is_rejected(
    person_editor: Editor, day: tuple[str, ...], words: str
) -> None:
    typed = dict(zip(("dob_month", "dob_day", "dob_year"), day, strict=True))
    page = html_of_error(person_editor.check(**typed))
    assert words in page
    assert re.search(r"<details[^>]* open>", page)


@pytest.mark.slow
@pytest.mark.parametrize(("days", "status"), [(0, 200), (1, 422)])
def test_a_person_must_be_18_to_the_day(
    person_editor: Editor, settings: LazySettings, days: int, status: int
) -> None:
    with time_machine.travel("2026-06-15 20:00:00 +0000"):
        today = rules.today_in(settings.SERVICING_TIME_ZONE)
        youngest = {"dob_month": "6", "dob_day": str(today.day + days), "dob_year": str(today.year - 18)}
        assert person_editor.check(**youngest).status_code == status


@pytest.mark.slow
@pytest.mark.parametrize("again", ["219-09-9998", "", "12"])
def test_a_mismatched_ssn_is_rejected_and_not_shown(
    person_editor: Editor, portal_service: Sandbox, again: str
) -> None:
    page = html_of_error(person_editor.send({"ssn": SSN, "ssn_again": again}, **WITH_SSN))
    assert not re.search(r"\b2190", page)
    assert "219-09" not in page
    assert not portal_service.calls


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("asset_report", b"<xml/>", "not JSON"),
        ("asset_report", b"\x1f\x8b\x08\x00bomb", "file is compressed"),
        ("asset_report", b"[" * 100_000 + b"]" * 100_000, "deep"),
        ("asset_report", b"\xff\xfe", "UTF-8"),
        ("asset_report", b"", "empty"),
        ("credit_report", b'{"a": 1}', "not XML"),
        ("credit_report", b"\x1f\x8b\x08\x00bomb", "file is compressed"),
        ("credit_report", BILLION_LAUGHS, "entity declarations"),
        (
            "credit_report",
            b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>',
            "entity declarations",
        ),
        ("credit_report", b"<a>" * 100_000, "Nested deeper"),
        ("credit_report", b'<?xml version="1.0" encoding="zlib"?><a/>', "encoding"),
        ("credit_report", b"<a/>" + b" " * 1_100_000, "larger than 1 MB"),
    ],
)
def test_an_invalid_report_is_rejected(
    editor: Editor, portal_service: Sandbox, settings: LazySettings, name: str, content: bytes, words: str
) -> None:
    settings.UPLOAD_LIMIT_MB = 1
    file = {name: SimpleUploadedFile("report", content)}
    assert words in html_of_error(editor.send(file, **{f"with_{name}": "on"}))
    assert not portal_service.calls


@pytest.mark.slow
def test_a_selected_report_requires_a_file(editor: Editor, portal_service: Sandbox) -> None:
    assert "Choose a file" in html_of_error(editor.send(with_asset_report="on"))
    assert not portal_service.calls


@pytest.mark.slow
def test_a_rejected_form_asks_for_the_file_again(person_editor: Editor, portal_service: Sandbox) -> None:
    file = SimpleUploadedFile("assets.json", b"{}")
    page = html_of_error(person_editor.send({"asset_report": file}, with_asset_report="on", **WITH_SSN))
    assert "Choose the file again." in page
    assert not portal_service.calls


def test_a_chosen_file_shows_its_size_before_sending(editor: Editor, portal_service: Sandbox) -> None:
    file = SimpleUploadedFile("credit.xml", b"<a>" + b" " * 20_000 + b"</a>")
    page = html(editor.post({"credit_report": file}, "measure", headers=htmx("")))
    assert re.search(r"20,007 bytes, \d\d after compression", page)
    invalid = html(editor.post({"asset_report": SimpleUploadedFile("a.json", b"<a/>")}, "measure"))
    assert "sd-note-bad" in invalid
    assert editor.post({"other": SimpleUploadedFile("a.json", b"{}")}, "measure").status_code == 204


@pytest.mark.slow
def test_an_upload_never_touches_the_disk(
    editor: Editor, portal_service: Sandbox, tmp_path: Any, settings: LazySettings
) -> None:
    settings.FILE_UPLOAD_TEMP_DIR = str(tmp_path / "missing")
    content = b'{"a": "' + b"x" * 4_000_000 + b'"}'
    answer = editor.send({"asset_report": SimpleUploadedFile("a.json", content)}, with_asset_report="on")
    assert answer.status_code == 303


@pytest.mark.slow
def test_a_confirmed_zip_of_a_bordering_state_is_sent(editor: Editor, portal_service: Sandbox) -> None:
    typed = {"state": "Texas", "zip": "73949", "city": "Texhoma"}
    assert "belongs to Oklahoma (OK), which borders Texas" in html(editor.check(**typed))
    rejected = editor.send(**typed)
    assert rejected.status_code == 422
    assert "Then confirm." in html(rejected)
    assert not portal_service.calls
    assert editor.send({"zip_checked": "on"}, **typed).status_code == 303
    assert "zip_checked" not in html(editor.check(email="new@bakery.example"))
