"""Each onboarding step saves its input, shows its errors, and works with and without HTMX."""

import gzip
import io
import json
import re
from datetime import timedelta

import pytest
from django.conf import LazySettings
from django.test import Client as Browser
from django.utils import timezone

from portal.borrowers.models import Draft, Step
from portal.records.models import Borrower, KeyPerson
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import htmx
from tests.portal.borrowers.wizard import ADDRESS, BUSINESS, EIN, ELENA, PRIYA, SSN, Wizard, html, people


@pytest.fixture
def wizard(servicer: Browser) -> Wizard:
    """Return a draft whose first step is complete."""
    wizard = Wizard(servicer)
    wizard.post("business", BUSINESS)
    return wizard


def draft() -> Draft:
    return Draft.objects.get()


def saved_fields(step: Step) -> list[dict[str, str]]:
    return draft().typed(step)


def first_names() -> list[str]:
    return [person.get("first_name", "") for person in saved_fields(Step.PEOPLE)]


def make_file(content: bytes, name: str = "assets.json") -> io.BytesIO:
    upload = io.BytesIO(content)
    upload.name = name
    return upload


# --- Saving ---


def test_opening_the_first_step_saves_nothing(servicer: Browser) -> None:
    page = html(servicer.get("/borrowers/new/"))
    assert "Not saved yet." in page
    assert not Draft.objects.exists()


@pytest.mark.slow
@pytest.mark.parametrize(("length", "kept"), [(999, 999), (1_000, 1_000), (1_001, 1_000), (400_000, 1_000)])
@pytest.mark.postgres
def test_a_draft_keeps_the_beginning_of_a_long_value(wizard: Wizard, length: int, kept: int) -> None:
    answer = wizard.post("business", BUSINESS | {"first_name": "1 " * (length // 2) + "x" * (length % 2)})
    assert answer.status_code == 422
    assert len(saved_fields(Step.BUSINESS)[0]["first_name"]) in (
        kept,
        kept - 1,
    )  # Space at the end is dropped.


@pytest.mark.postgres
def test_a_valid_first_step_creates_a_draft(wizard: Wizard) -> None:
    answer = wizard.post("business", BUSINESS)
    assert (answer.status_code, answer["Location"]) == (303, f"{wizard.url}address/")
    assert draft().title == BUSINESS["first_name"]
    assert draft().get_absolute_url() == f"{wizard.url}address/"
    assert draft().step_label == "Address"


@pytest.mark.parametrize("act", ["autosave", "dance", "remove-99", ""])
def test_an_unknown_action_stays_on_the_step(act: str, wizard: Wizard) -> None:
    answer = wizard.post("business", BUSINESS, act)
    assert (answer.status_code, answer["Location"].partition("#")[0]) == (303, f"{wizard.url}business/")


@pytest.mark.postgres
def test_pressing_next_twice_creates_one_draft(wizard: Wizard) -> None:
    wizard.post("business", BUSINESS)
    assert Draft.objects.count() == 1


def test_an_invalid_first_step_saves_nothing(servicer: Browser) -> None:
    assert Wizard(servicer).post("business", {"first_name": "Acme"}).status_code == 422
    assert not Draft.objects.exists()


def test_autosave_saves_incomplete_input(servicer: Browser) -> None:
    wizard = Wizard(servicer)
    answer = wizard.post("business", {"first_name": "Ac", "phone": "12"}, headers=htmx("draft-state"))
    assert html(answer).strip().startswith('<p id="draft-state"')
    assert "Draft saved" in html(answer)
    assert answer["HX-Replace-Url"] == f"{wizard.url}business/"
    assert saved_fields(Step.BUSINESS) == [{"first_name": "Ac", "phone": "12"}]


def test_a_draft_resumes_with_its_invalid_input(wizard: Wizard) -> None:
    response = wizard.post("address", ADDRESS | {"zip": "9021"}, act="leave")
    assert response["Location"] == "/borrowers/"
    page = html(wizard.browser.get(draft().get_absolute_url()))
    assert 'value="9021"' in page
    assert "“9021” isn’t a ZIP code" in page
    assert "Needs attention: 1 field" in page


def test_going_back_saves_the_step(wizard: Wizard) -> None:
    assert wizard.post("address", {"city": "Aus"}, act="back")["Location"] == f"{wizard.url}business/"
    assert saved_fields(Step.ADDRESS) == [{"city": "Aus"}]


def test_empty_fields_of_a_saved_step_show_no_errors(wizard: Wizard) -> None:
    wizard.post("address", {"city": "Austin"}, act="leave")
    page = html(wizard.get("address"))
    assert "In progress" in page
    assert "Enter the " not in page


@pytest.mark.postgres
def test_no_step_saves_an_ein_or_ssn(wizard: Wizard) -> None:
    secrets = {"ein": EIN, "ssn_0": SSN, "person-0-ssn": SSN, "reason": "r"}
    for step in ("business", "address", "people", "reports"):
        wizard.post(step, secrets, act="leave")
    wizard.post("review", secrets, act="leave")
    saved = json.dumps(draft().data)
    assert EIN not in saved
    assert SSN not in saved


@pytest.mark.postgres
def test_an_old_draft_is_deleted(wizard: Wizard, settings: LazySettings) -> None:
    Draft.objects.update(updated_at=timezone.now() - timedelta(days=settings.DRAFT_DAYS + 1))
    wizard.browser.get("/borrowers/new/")
    assert not Draft.objects.exists()


def test_a_discarded_draft_is_deleted(wizard: Wizard) -> None:
    answer = wizard.browser.post(f"{wizard.url}discard/")
    assert answer["Location"] == "/borrowers/"
    assert wizard.get("address").status_code == 404
    assert wizard.browser.get(f"{wizard.url}discard/").status_code == 405


def test_input_for_a_discarded_draft_is_not_saved(wizard: Wizard) -> None:
    wizard.browser.post(f"{wizard.url}discard/")
    answer = wizard.post("address", ADDRESS, headers=htmx("draft-state"))
    assert answer.status_code == 409
    assert "Not saved" in html(answer)
    assert wizard.post("address", ADDRESS, headers=htmx("wizard"))["HX-Redirect"] == f"{wizard.url}address/"
    assert not Draft.objects.exists()


def test_a_draft_is_private_to_its_creator(wizard: Wizard, supervisor: Browser) -> None:
    assert supervisor.get(f"{wizard.url}address/").status_code == 404
    assert supervisor.post(f"{wizard.url}business/", BUSINESS | {"first_name": "Mine"}).status_code == 404
    supervisor.post(f"{wizard.url}discard/")
    assert draft().title == BUSINESS["first_name"]
    assert BUSINESS["email"] not in html(supervisor.get("/borrowers/new/"))


@pytest.mark.slow
def test_the_first_page_offers_to_resume_a_draft(wizard: Wizard) -> None:
    page = html(wizard.browser.get("/borrowers/new/"))
    assert f'href="{wizard.url}address/">Resume</a>' in page


def test_an_unknown_step_is_not_found(wizard: Wizard) -> None:
    assert wizard.get("nonsense").status_code == 404
    assert wizard.post("nonsense", BUSINESS).status_code == 404


# --- Bad input ---

INVALID = {
    "business": (
        {
            "first_name": "\x07",
            "entity": "CLUB",
            "email": "x",
            "phone": "51",
            "incorporated_on": "2999-01-01",
        },
        [
            "an invisible character",
            "Choose an option from the list",
            "Enter a full email address",
            "(2 entered)",
            "in the future",
        ],
    ),
    "address": (
        {"line_1": "", "line_2": "x" * 101, "city": "\x07", "state": "Ontario", "zip": "K1A"},
        [
            "Enter address line 1.",
            "101 entered",
            "position 1 of the city",
            "“Ontario” is not",
            "“K1A” isn’t a ZIP",
        ],
    ),
    "people": (
        people(ELENA | {"last_name": "R2"}, PRIYA | {"title": "", "citizenship": "Mars", "dob_year": "2020"}),
        [
            "can’t contain digits (“2”).",
            "Person 2: Choose a title",
            "“Mars” is not a country. Enter its name or its code",
            "requires 18 or older",
        ],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("step", INVALID)
def test_a_step_shows_all_errors_at_once(step: str, wizard: Wizard) -> None:
    invalid, reasons = INVALID[step]
    answer = wizard.post(step, invalid)
    assert answer.status_code == 422
    assert [reason for reason in reasons if reason.casefold() not in html(answer).casefold()] == []
    assert "Nothing was sent." in html(answer)


@pytest.mark.slow
@pytest.mark.parametrize("step", INVALID)
def test_a_rejected_step_is_an_htmx_fragment(step: str, wizard: Wizard) -> None:
    answer = wizard.post(step, INVALID[step][0], headers=htmx("wizard"))
    assert answer.status_code == 422
    assert html(answer).strip().startswith('<div class="sd-wizard" id="wizard">')
    assert "<html" not in html(answer)


def test_a_zip_outside_its_state_is_rejected(wizard: Wizard) -> None:
    page = html(wizard.post("address", ADDRESS | {"state": "NY"}))
    assert "ZIP code 78702 is not in New York: it belongs to Texas (TX)." in page


def test_an_address_can_be_checked_before_continuing(wizard: Wizard) -> None:
    page = html(wizard.post("address", ADDRESS, act="try"))
    assert "Format looks right: 1180 Airport Blvd, Austin, TX 78702." in page
    assert "The service verifies street and city" in page
    assert wizard.post("address", ADDRESS | {"zip": "1"}, act="try").status_code == 422


HOSTILE = ["x" * 10_000, "\0", "\ud800", "‮<script>alert(1)</script>", "٣" * 50, "-1", "../../etc/passwd"]


@pytest.mark.slow
@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("step", ["business", "address", "people", "reports"])
def test_hostile_text_is_escaped(step: str, text: str, wizard: Wizard) -> None:
    fields = people(ELENA) if step == "people" else BUSINESS | ADDRESS
    posted = [
        *fields,
        "dob",
        "person-0-dob_year",
        "incorporated_on_day",
        "person-99-city",
        "asset_report",
        "act",
    ]
    raw = "".join(f"%{byte:02x}" for byte in text.encode("utf-8", "surrogatepass"))
    body = "&".join(f"{name}={raw}" for name in posted)
    answer = wizard.browser.post(
        f"{wizard.url}{step}/", body, content_type="application/x-www-form-urlencoded"
    )
    assert answer.status_code in (303, 422)
    page = html(wizard.get(step))
    assert "<script>alert" not in page
    assert html(wizard.get("review"))


# --- Live checks ---


def check_field(wizard: Wizard, step: str, fields: dict[str, str], name: str) -> str:
    headers = {"HX-Request": "true", "HX-Trigger-Name": name}
    return html(wizard.post(step, fields, act="check", headers=headers))


def test_leaving_an_invalid_field_shows_its_error(wizard: Wizard) -> None:
    page = check_field(wizard, "business", {"first_name": "AT&T"}, "first_name")
    assert "“&amp;” at position 3 isn’t allowed; write “and”." in page
    assert page.count('class="sd-field ') == 1
    assert 'id="requirements" hx-swap-oob="true"' in page


def test_leaving_a_valid_field_confirms_it(wizard: Wizard) -> None:
    assert "Accepted" in check_field(wizard, "people", people(ELENA), "person-0-first_name")
    assert "Sent as IN" in check_field(wizard, "people", people(PRIYA), "person-0-citizenship")
    assert "18 or older" in check_field(wizard, "people", people(PRIYA), "person-0-dob_year")
    assert "In Texas" in check_field(wizard, "address", ADDRESS, "zip")


def test_an_incomplete_date_is_not_checked(wizard: Wizard) -> None:
    fields = people(ELENA | {"dob_month": "4", "dob_day": "19"})
    assert check_field(wizard, "people", fields, "person-0-dob_day") == ""


def test_checking_a_field_saves_nothing(servicer: Browser) -> None:
    check_field(Wizard(servicer), "business", BUSINESS, "email")
    check_field(Wizard(servicer), "business", BUSINESS, "no_such_field")
    assert not Draft.objects.exists()


def test_met_requirements_are_checked_off(wizard: Wizard) -> None:
    page = check_field(wizard, "people", people(ELENA | {"title": ""}), "person-0-email")
    assert "(met)" in page
    assert page.count("(not yet)") == 1


# --- Key people ---


@pytest.mark.slow
@pytest.mark.parametrize(
    ("act", "left"),
    [
        ("add", ["Elena", "Priya", ""]),
        ("duplicate-0", ["Elena", "Elena", "Priya"]),
        ("remove-0", ["Priya"]),
        ("down-0", ["Priya", "Elena"]),
        ("up-1", ["Priya", "Elena"]),
        ("up-0", ["Elena", "Priya"]),
        ("down-1", ["Elena", "Priya"]),
        ("remove-7", ["Elena", "Priya"]),
        ("remove-x", ["Priya"]),
    ],
)
def test_people_can_be_rearranged_without_javascript(act: str, left: list[str], wizard: Wizard) -> None:
    answer = wizard.post("people", people(ELENA, PRIYA), act=act)
    assert answer.status_code == 303
    assert answer["Location"].startswith(f"{wizard.url}people/#person-")
    assert first_names() == left


def test_adding_a_person_is_an_htmx_fragment(wizard: Wizard) -> None:
    page = html(wizard.post("people", people(ELENA), act="add", headers=htmx("wizard")))
    assert page.strip().startswith('<div class="sd-wizard" id="wizard">')
    assert 'data-announce="Person 2 of 2"' in page


def test_the_last_person_cannot_be_removed(wizard: Wizard) -> None:
    wizard.post("people", people(ELENA), act="remove-0")
    assert first_names() == ["Elena"]


@pytest.mark.slow
def test_a_person_can_use_the_business_address(wizard: Wizard) -> None:
    wizard.post("address", ADDRESS)
    assert "Same address as the business: 1180 Airport Blvd, Austin, TX 78702" in html(wizard.get("people"))
    assert wizard.post("people", people(ELENA | {"zip": "nonsense"})).status_code == 303
    assert wizard.post("people", people(ELENA | {"same_address": ""})).status_code == 422


@pytest.mark.slow
def test_a_repeated_email_and_phone_show_a_warning(wizard: Wizard) -> None:
    shared = {"email": ELENA["email"].upper(), "phone": "(512) 555-0178"}
    wizard.post("people", people(ELENA, PRIYA | shared))
    page = html(wizard.get("people"))
    assert page.count("Also entered for person 1.") == 2


@pytest.mark.slow
def test_a_person_matching_a_borrower_shows_a_warning(wizard: Wizard, sandbox: Sandbox) -> None:
    known = given.borrower(sandbox, first_name="Tallgrass Farms LP", phone="5125550199")
    wizard.post("people", people(ELENA, PRIYA))
    page = html(wizard.get("people"))
    assert "Also on borrower Tallgrass Farms LP. Same person?" in page
    assert f'<a href="{known.get_absolute_url()}" target="_blank">Open Tallgrass Farms LP</a>' in page
    assert wizard.post("people", people(ELENA, PRIYA)).status_code == 303


def test_an_archived_borrower_of_the_same_name_shows_no_warning(wizard: Wizard, sandbox: Sandbox) -> None:
    known = given.borrower(sandbox, first_name=BUSINESS["first_name"])
    link = f'<a href="{known.get_absolute_url()}" target="_blank">Open '
    assert link in html(wizard.get("business"))
    Borrower.objects.update(archived_at=timezone.now())
    assert link not in html(wizard.get("business"))


@pytest.mark.slow
def test_a_person_matching_a_key_person_shows_a_warning(wizard: Wizard, sandbox: Sandbox) -> None:
    existing = given.borrower(sandbox, first_name="Tallgrass Farms LP")
    person = KeyPerson.objects.filter(borrower_uuid=existing.uuid)[0]
    wizard.post("people", people(ELENA | {"email": person.email.upper()}))
    page = html(wizard.get("people"))
    assert "Also on a key person of Tallgrass Farms LP. Same person?" in page


# --- Reports ---


@pytest.mark.postgres
def test_a_report_is_stored_compressed_and_shows_both_sizes(wizard: Wizard) -> None:
    report = b'{"accounts": [' + b'{"balance": 12.50},' * 5000 + b"0]}"
    assert wizard.post("reports", {"asset_report": make_file(report)})["Location"] == f"{wizard.url}review/"
    page = html(wizard.get("reports"))
    assert "assets.json" in page
    assert "92.8" in page
    assert "compressed</small>" in page
    assert "balance" not in page
    assert gzip.decompress(draft().asset_report or b"") == report


def test_a_byte_order_mark_is_ignored(wizard: Wizard) -> None:
    wizard.post("reports", {"asset_report": make_file(b'\xef\xbb\xbf{"accounts": []}')})
    assert gzip.decompress(draft().asset_report or b"") == b'{"accounts": []}'


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "The file is empty."),
        (b'{"a": }', "This is not JSON (line 1, position 7: invalid character)"),
        (b'{"a": 1', "This is not JSON (line 1, position 8: the file ends too early)"),
        (b'{"a": "\\ud83', "This is not JSON (line 1, position 13: the file ends too early)"),
        (b'{"a":\n"\\ud83d"}', "This is not JSON (line 2, position 2: half of a character, \\ud83d)"),
        (b'["\\ude00"]', "This is not JSON (line 1, position 3: half of a character, \\ude00)"),
        (b'["\\ud83d\\ud83d\\ude00"]', "line 1, position 3: half of a character, \\ud83d)"),
        (b'{"\xc3\xa9\\uD800x": 1, "b": [1,]}', "line 1, position 4: half of a character, \\uD800)"),
        (b'["\\\\ud83d", "\\ud83d\\ude00",]', "line 1, position 28: trailing comma in array)"),
        (b'{"a": "\x00"}', "This is not JSON"),
        (b"\x00\x01\x02", "This is not JSON"),
        (b"\x89PNG\r\n\x1a\n", "Not UTF-8 text"),
        (b'{"a": "\xff"}', "Not UTF-8 text"),
        (gzip.compress(b"0" * 50_000_000, mtime=0), "This file is compressed."),
        (b'{"a":' * 200 + b"1" + b"}" * 200, "Nested deeper than 100 levels"),
        (b"[" * 100_000, "Nested deeper than 100 levels"),
        (b'"just text"', "must be an object or a list"),
        (b"NaN", "This is not JSON"),
    ],
)
def test_an_invalid_report_is_rejected(content: bytes, reason: str, wizard: Wizard) -> None:
    answer = wizard.post("reports", {"asset_report": make_file(content)})
    assert answer.status_code == 422
    assert reason in html(answer)
    assert not draft().asset_report


def test_brackets_in_strings_do_not_count_as_nesting(wizard: Wizard) -> None:
    content = json.dumps({"a": "[" * 500 + '"\\'}).encode() + b"  \n"
    assert wizard.post("reports", {"asset_report": make_file(content)}).status_code == 303


def test_a_report_over_the_limit_is_rejected(wizard: Wizard, settings: LazySettings) -> None:
    settings.UPLOAD_LIMIT_MB = 1
    page = html(wizard.post("reports", {"asset_report": make_file(b"[" + b" " * 1_100_000 + b"]")}))
    assert "larger than 1 MB" in page


@pytest.mark.slow
def test_a_rejected_report_keeps_the_previous_one(wizard: Wizard) -> None:
    wizard.post("reports", {"asset_report": make_file(b"[1]", "first.json")}, act="upload")
    wizard.post("reports", {"asset_report": make_file(b"nonsense")})
    assert draft().asset_report_name == "first.json"


@pytest.mark.slow
def test_review_shows_a_rejected_report_until_replaced(wizard: Wizard) -> None:
    wizard.fill()
    assert "Not attached" not in html(wizard.get("review"))
    wizard.post("reports", {"asset_report": make_file(b"<xml/>", "assets.json")})
    wizard.post("reports", {})
    for step in ("reports", "review"):
        assert "assets.json: This is not JSON" in html(wizard.get(step))
    assert "Not attached" in html(wizard.get("review"))
    wizard.post("reports", {}, act="clear")
    assert "Not attached" not in html(wizard.get("review"))
    wizard.post("reports", {"asset_report": make_file(b"<xml/>", "assets.json")})
    wizard.post("reports", {"asset_report": make_file(b"[1]", "better.json")})
    assert "Not attached" not in html(wizard.get("review"))


@pytest.mark.slow
def test_checking_without_a_file_asks_for_one(wizard: Wizard) -> None:
    wizard.post("reports", {"asset_report": make_file(b"<xml/>", "assets.json")}, act="upload")
    answer = wizard.post("reports", {}, act="upload")
    page = html(answer)
    assert answer.status_code == 422
    assert "Asset report: Choose a file." in page
    assert "<b>Not attached</b><small>assets.json: This is not JSON" in page


@pytest.mark.slow
def test_a_report_can_be_removed(wizard: Wizard) -> None:
    wizard.post("reports", {"asset_report": make_file(b"[1]")}, act="upload")
    wizard.post("reports", {}, act="clear")
    assert "Optional, not started" in html(wizard.get("reports"))
    assert not draft().asset_report


def test_a_hostile_file_name_is_sanitized(wizard: Wizard) -> None:
    name = "../../" + "x" * 300 + "<i>.json"
    wizard.post("reports", {"asset_report": make_file(b"[1]", name)}, act="upload")
    assert len(draft().asset_report_name) <= 255
    assert "/" not in draft().asset_report_name
    assert "<i>" not in html(wizard.get("reports"))


# --- Two windows ---


def opened_by(wizard: Wizard, step: str) -> dict[str, str]:
    """The hidden version of a step's page, opened now."""
    return {"opened": re.findall(r'name="opened" value="([^"]+)"', html(wizard.get(step)))[0]}


@pytest.mark.slow
@pytest.mark.postgres
def test_an_older_window_does_not_overwrite_a_newer_one(wizard: Wizard) -> None:
    older, newer = opened_by(wizard, "address"), opened_by(wizard, "address")
    assert wizard.post("address", ADDRESS | newer).status_code == 303
    typed = ADDRESS | {"line_1": "9 Second Window Rd"} | older
    for act in ("next", "back", "leave", "try", "autosave"):
        answer = wizard.post("address", typed, act)
        assert answer.status_code == 409
        assert saved_fields(Step.ADDRESS)[0]["line_1"] == ADDRESS["line_1"]
    page = html(wizard.post("address", typed))
    assert "This step was changed in another window" in page
    assert 'value="9 Second Window Rd"' in page
    again = typed | {"opened": re.findall(r'name="opened" value="([^"]+)"', page)[0]}
    assert wizard.post("address", again).status_code == 303
    assert saved_fields(Step.ADDRESS)[0]["line_1"] == "9 Second Window Rd"


@pytest.mark.slow
def test_both_versions_can_be_kept(wizard: Wizard) -> None:
    wizard.post("reports", {"asset_report": make_file(b'{"accounts": []}')}, "upload")
    older, newer = opened_by(wizard, "address"), opened_by(wizard, "address")
    wizard.post("address", ADDRESS | newer)
    answer = wizard.post("address", ADDRESS | {"line_1": "9 Second Window Rd"} | older, "copy")
    first, second = Draft.objects.order_by("created_at")
    assert answer["Location"] == second.url(Step.ADDRESS)
    assert [one.typed(Step.ADDRESS)[0]["line_1"] for one in (first, second)] == [
        ADDRESS["line_1"],
        "9 Second Window Rd",
    ]
    assert first.typed(Step.BUSINESS) == second.typed(Step.BUSINESS)
    assert gzip.decompress(second.asset_report or b"") == b'{"accounts": []}'
    assert first.submit_id != second.submit_id


@pytest.mark.slow
def test_one_window_saves_as_often_as_it_likes(wizard: Wizard) -> None:
    opened = opened_by(wizard, "address")
    for number in range(3):
        typed = ADDRESS | opened | {"line_1": f"{number} Airport Blvd"}
        assert wizard.post("address", typed, "autosave").status_code == 303
    assert wizard.post("address", ADDRESS | opened).status_code == 303


@pytest.mark.slow
def test_another_step_or_the_same_text_is_no_conflict(wizard: Wizard) -> None:
    older = opened_by(wizard, "address")
    wizard.post("people", people(ELENA) | opened_by(wizard, "people"))
    assert wizard.post("address", ADDRESS | older).status_code == 303
    assert wizard.post("address", ADDRESS | {"opened": f"{'0' * 16}.other"}).status_code == 303


# --- Too many people ---


def crowd(number: int) -> list[dict[str, str]]:
    return [ELENA | {"first_name": "Ana" + "b" * n, "email": f"p{n}@oneil.example"} for n in range(number)]


@pytest.mark.slow
def test_people_beyond_the_limit_are_named_and_kept(wizard: Wizard) -> None:
    answer = wizard.post("people", people(*crowd(53)))
    assert answer.status_code == 422
    assert "Up to 50 people can be sent. Remove 3." in html(answer)
    assert len(saved_fields(Step.PEOPLE)) == 53
    assert "Up to 50 people can be sent. Remove 3." in html(wizard.get("people"))
    wizard.post("address", ADDRESS)
    assert "needs attention" in html(wizard.get("review")).lower()
    assert wizard.post("people", people(*crowd(50))).status_code == 303


def test_no_person_is_lost_for_a_gap_in_the_numbers(wizard: Wizard) -> None:
    first, second = people(ELENA, PRIYA), people(ELENA, ELENA, ELENA, PRIYA)
    typed = {name: text for name, text in second.items() if name.startswith("person-3-")}
    kept = {name: text for name, text in first.items() if name.startswith("person-0-")}
    wizard.post("people", kept | typed)
    assert first_names() == ["Elena", "Priya"]
    wizard.post("people", kept | typed, "remove-3")
    assert first_names() == ["Elena"]


@pytest.mark.slow
def test_adding_beyond_the_limit_is_refused_with_words(wizard: Wizard) -> None:
    answer = wizard.post("people", people(*crowd(50)), "add")
    assert len(saved_fields(Step.PEOPLE)) == 50
    assert "Up to 50 people can be sent." in html(wizard.browser.get(answer["Location"].partition("#")[0]))
