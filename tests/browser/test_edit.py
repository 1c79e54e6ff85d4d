"""Editing in a browser: by keyboard, in dialogs, with files, while checks are slow, and checked by axe."""

import json
import re
from datetime import timedelta

import pytest
from django.conf import LazySettings, settings
from playwright.sync_api import Page, Route, expect

from portal.core.business_date import business_date
from portal.notes.models import FollowUp, Note
from portal.records.models import Borrower, KeyPerson
from servicing.sandbox import Sandbox
from tests import given
from tests.browser.axe import find_problems
from tests.browser.conftest import press

pytestmark = pytest.mark.browser
SSN = "219099999"


@pytest.fixture
def maya(portal_service: Sandbox, settings: LazySettings) -> KeyPerson:
    settings.APPROVAL_ACTS = []  # Approvals have their own tests.
    owner = given.borrower(portal_service)
    return KeyPerson.objects.get(borrower_uuid=owner.uuid)


def borrower_edit_path(record: Borrower) -> str:
    return f"/borrowers/{record.borrower_uuid}/edit/"


def person_edit_path(record: KeyPerson) -> str:
    return f"/borrowers/{record.borrower_uuid}/people/{record.uuid}/edit/"


OUTLINE_STYLE = "title => getComputedStyle(title).outlineStyle"


def release_request(page: Page, paused: list[Route]) -> None:
    """Continue the paused request, once the page has sent it, and wait for its response."""
    for _ in range(500):
        if paused:
            break
        page.wait_for_timeout(20)
    request = paused[0].request
    with page.expect_response(lambda answer: answer.request == request):
        paused.pop().continue_()


def test_title_and_ssn_are_changed_by_keyboard_alone(
    page: Page, maya: KeyPerson, portal_service: Sandbox
) -> None:
    page.goto(person_edit_path(maya))
    page.focus("[name=title]")
    page.keyboard.type("Director")
    page.focus("main summary")
    press(page, "Enter", "Tab", "Tab", "Tab", "Tab", "Space", "Enter")
    title = page.get_by_role("heading", name="Review changes to")
    expect(title).to_be_focused()
    assert title.evaluate(OUTLINE_STYLE) == "solid"
    page.focus("[name=ssn]")
    page.keyboard.type(SSN)
    press(page, "Tab")
    page.keyboard.type(SSN)
    press(page, "Tab")
    page.keyboard.type("On the phone")
    press(page, "Tab", "Tab", "Tab", "Enter")
    expect(page.locator("#toasts")).to_contain_text("updated; 1 not returned")
    assert portal_service.world.received_ssn(maya.uuid) == SSN


def test_an_individual_is_edited_from_the_home_page(
    page: Page, maya: KeyPerson, portal_service: Sandbox
) -> None:
    given.individual(portal_service, first_name="Theodora", last_name="Hathaway")
    page.goto("/")
    press(page, "/")
    page.keyboard.type("Theodora")
    page.get_by_role("option", name="Theodora").first.click()
    page.locator(".sd-identity").get_by_role("link", name="Edit", exact=True).click()
    page.get_by_label("Phone").fill("(512) 555-0143")
    page.get_by_text("Date of birth, SSN and reports").click()
    for part, digits in (("month", "4"), ("day", "19"), ("year", "1987")):
        page.locator(f"[name=dob_{part}]").fill(digits)
    page.get_by_role("button", name="Review changes").click()
    page.get_by_role("button", name="Send").click()
    expect(page.locator("#toasts")).to_contain_text("updated; 1 not returned")
    rows = page.get_by_role("row")
    expect(rows.filter(has_text="Phone")).to_contain_text("Confirmed")
    expect(rows.filter(has_text="Date of birth")).to_contain_text("Not returned")
    body = json.loads(portal_service.calls[-1].body or "{}")
    assert body == {"phone": "5125550143", "dob": "1987/04/19"}


def test_review_buttons_and_values_are_aligned(page: Page, maya: KeyPerson) -> None:
    page.goto(borrower_edit_path(maya))
    page.fill("[name=phone]", "(512) 555-0188")
    page.get_by_role("button", name="Review changes").click()
    expect(page.get_by_role("button", name="Send change")).to_be_visible()
    title = page.get_by_role("heading", name="Review changes to")
    expect(title).to_be_focused()
    assert title.evaluate(OUTLINE_STYLE) == "none"
    for width, line in ((1440, ".sd-form-foot .sd-btn"), (390, ".sd-changes td")):
        page.set_viewport_size({"width": width, "height": 900})
        tops = page.locator(line).evaluate_all("all => all.map(one => one.getBoundingClientRect().top)")
        assert (width, len(tops) > 1, len(set(tops))) == (width, True, 1)


def test_a_changed_field_shows_its_old_value_and_can_be_undone(page: Page, maya: KeyPerson) -> None:
    page.goto(borrower_edit_path(maya))
    phone, row = page.locator("[name=phone]"), page.locator(".sd-edit-phone")
    before = phone.input_value()
    expect(row.locator("[data-was-words]")).to_be_hidden()
    phone.fill("5125550199")
    expect(row.locator("[data-was-words]")).to_contain_text(f"was {before}")
    phone.press("Tab")
    expect(phone).to_have_value("(512) 555-0199")
    row.get_by_role("button", name="Undo").click()
    expect(phone).to_have_value(before)
    expect(phone).to_be_focused()
    expect(row.locator("[data-was-words]")).to_be_hidden()


def test_a_phone_number_is_changed_in_a_dialog_on_the_borrower_page(
    page: Page, maya: KeyPerson, portal_service: Sandbox
) -> None:
    borrower = f"/borrowers/{maya.borrower_uuid}/"
    page.goto(borrower)
    title = page.title()
    change = page.locator(".sd-factline").get_by_role("link", name="Change phone")
    assert change.get_attribute("href") == borrower_edit_path(maya)  # The link works without the script.
    change.click()
    dialog = page.get_by_role("dialog", name="Change phone of")
    expect(dialog.get_by_label("Phone")).to_be_focused()
    assert find_problems(page) == []
    press(page, "Escape")
    expect(change).to_be_focused()
    change.click()
    expect(dialog.get_by_label("Phone")).to_be_focused()
    page.keyboard.type("12")
    press(page, "Enter")
    expect(dialog.get_by_role("alert")).to_contain_text("Fix 1 field.")
    expect(dialog.get_by_role("textbox")).to_have_count(1)
    dialog.get_by_label("Phone").fill("5125550199")
    press(page, "Enter")
    expect(dialog.get_by_role("heading", name="Review changes to")).to_be_focused()
    wide, narrow = dialog.evaluate("one => [one.clientWidth, one.querySelector('form.sd-card').offsetWidth]")
    assert wide == narrow
    assert page.title() == title
    assert find_problems(page) == []
    dialog.get_by_role("button", name="Back to edit").click()
    expect(dialog.get_by_label("Phone")).to_have_value("(512) 555-0199")
    dialog.get_by_label("Phone").press("Enter")
    dialog.get_by_role("button", name="Send change").click()
    expect(page.locator("#toasts")).to_contain_text("Phone updated")
    expect(page).to_have_url(re.compile(f"{borrower}$"))
    expect(page.locator(".sd-factline")).to_contain_text("(512) 555-0199")
    assert [call.operation for call in portal_service.calls] == ["borrowers.update"]


def test_ctrl_enter_saves_a_note(page: Page, maya: KeyPerson) -> None:
    page.goto(f"/borrowers/{maya.borrower_uuid}/?tab=notes")
    page.get_by_role("link", name="Add note").click()
    expect(page.get_by_role("dialog").get_by_label("Note", exact=True)).to_be_focused()
    assert find_problems(page) == []
    page.keyboard.type("Calls only after noon.")
    press(page, "Control+Enter")
    expect(page.locator("#toasts")).to_contain_text("Note added")
    assert Note.objects.get().text == "Calls only after noon."


def test_date_buttons_set_the_follow_up_date(page: Page, maya: KeyPerson) -> None:
    today = business_date()
    page.goto(f"/borrowers/{maya.borrower_uuid}/?tab=notes")
    page.get_by_role("link", name="Add a follow-up").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Task")).to_be_focused()
    assert find_problems(page) == []
    dialog.get_by_role("button", name="Add follow-up").click()
    expect(dialog.get_by_role("alert")).to_contain_text("Fix 2 fields")
    dialog.get_by_label("Task").fill("Ask for the statement")
    dialog.get_by_role("button", name="Tomorrow").click()
    expect(dialog.get_by_label("Due", exact=True)).to_have_value(f"{today + timedelta(1)}")
    if today.weekday():  # On a Monday, the button for a week from now is called Monday.
        dialog.get_by_role("button", name="One week").click()
    else:
        dialog.get_by_role("button", name="Monday").click()
    box = dialog.bounding_box()
    assert box
    assert box["width"] <= 560
    dialog.get_by_role("button", name="Add follow-up").click()
    expect(page.locator("#toasts")).to_contain_text("Follow-up added")
    assert FollowUp.objects.get().due == today + timedelta(7)


def test_going_back_from_the_review_asks_first(page: Page, maya: KeyPerson) -> None:
    page.goto(borrower_edit_path(maya))
    page.goto(person_edit_path(maya))
    page.fill("[name=last_name]", "Raman")
    press(page, "Enter")
    heading = page.get_by_role("heading", name="Review changes to")
    expect(heading).to_be_focused()
    with page.expect_event("dialog") as asked:
        page.evaluate("setTimeout(() => history.back())")
    assert asked.value.type == "beforeunload"
    asked.value.dismiss()
    expect(heading).to_be_visible()


def test_enter_opens_the_review_and_then_sends(page: Page, maya: KeyPerson, portal_service: Sandbox) -> None:
    page.goto(borrower_edit_path(maya))
    page.fill("[name=email]", "new@bakery.example")
    press(page, "Enter")
    page.focus("text=Send change")
    expect(page).to_have_title(re.compile(r"^Review changes to .+ · "))
    press(page, "Enter")
    expect(page.get_by_role("heading", name="Response")).to_be_visible()
    expect(page).to_have_title(re.compile(r"^Changes to .+ · "))
    assert [call.operation for call in portal_service.calls] == ["borrowers.update"]


def test_a_slow_click_on_the_button_submits_the_form(page: Page, maya: KeyPerson) -> None:
    page.goto(person_edit_path(maya))
    page.fill("[name=last_name]", "Raman2")
    page.locator("text=Review changes >> nth=-1").hover()
    page.mouse.down()
    page.wait_for_timeout(500)  # A slow click: a field message shown now would move the button away.
    page.mouse.up()
    expect(page.locator(".sd-errors")).to_be_visible()


def test_a_field_message_waits_while_a_button_is_pressed(page: Page, maya: KeyPerson) -> None:
    page.goto(person_edit_path(maya))
    paused: list[Route] = []
    page.route("**/edit/", lambda route: paused.append(route), times=1)
    page.fill("[name=last_name]", "O’Neil & Co")
    press(page, "Tab")
    button = page.locator("text=Review changes >> nth=-1")
    button.hover()
    page.mouse.down()
    before = button.bounding_box()
    release_request(page, paused)
    page.wait_for_timeout(500)
    assert button.bounding_box() == before
    page.mouse.move(0, 0)
    page.mouse.up()
    expect(page.get_by_text("“&” at position 8 isn’t allowed")).to_be_visible()


def test_a_partly_typed_date_survives_a_click_elsewhere(page: Page) -> None:
    page.goto("/borrowers/new/")
    paused: list[Route] = []
    page.route("**/borrowers/new/**", lambda route: paused.append(route), times=1)
    page.get_by_label("Month").first.fill("12")
    press(page, "Tab")
    page.locator("h1").hover()
    page.mouse.down()
    release_request(page, paused)
    page.mouse.up()
    page.wait_for_timeout(300)
    expect(page.get_by_label("Month").first).to_have_value("12")


def test_leaving_an_unchanged_field_again_shows_its_message(page: Page, maya: KeyPerson) -> None:
    page.goto(person_edit_path(maya))
    paused: list[Route] = []
    page.route("**/edit/", lambda route: paused.append(route), times=1)
    page.fill("[name=first_name]", "O’Neil & Co")
    press(page, "Tab", "Shift+Tab")
    release_request(page, paused)
    press(page, "Tab")
    expect(page.get_by_text("“&” at position 8 isn’t allowed")).to_be_visible()


def test_a_field_message_appears_after_a_click_elsewhere(page: Page, maya: KeyPerson) -> None:
    page.goto(person_edit_path(maya))
    page.fill("[name=last_name]", "O’Neil & Co")
    page.locator("h1").click(delay=500)
    expect(page.get_by_text("“&” at position 8 isn’t allowed")).to_be_visible()


def test_leaving_a_name_field_checks_it(page: Page, maya: KeyPerson) -> None:
    page.goto(person_edit_path(maya))
    page.fill("[name=last_name]", "O’Neil & Co")
    press(page, "Tab")
    expect(page.get_by_text("“&” at position 8 isn’t allowed")).to_be_visible()
    page.fill("[name=last_name]", "O’Neil and Co")
    press(page, "Tab")
    expect(page.get_by_text("Accepted")).to_be_visible()


def test_a_check_preserves_text_typed_while_it_runs(page: Page, maya: KeyPerson) -> None:
    page.goto(person_edit_path(maya))
    paused: list[Route] = []
    page.route("**/edit/", lambda route: paused.append(route))
    page.fill("[name=first_name]", "O’Neil & Co")
    press(page, "Tab", "Shift+Tab", "End")
    page.keyboard.type("mpany")
    release_request(page, paused)
    page.unroute("**/edit/")
    press(page, "Tab")
    expect(page.get_by_text("“&” at position 8 isn’t allowed")).to_be_visible()
    expect(page.locator("[name=first_name]")).to_have_value("O’Neil & Company")


def test_fast_typing_on_a_slow_connection_checks_every_field(page: Page, maya: KeyPerson) -> None:
    page.goto(person_edit_path(maya))
    connection = {"offline": False, "latency": 300, "downloadThroughput": -1, "uploadThroughput": -1}
    page.context.new_cdp_session(page).send("Network.emulateNetworkConditions", connection)
    page.click("main summary")
    page.focus("[name=dob_month]")  # The field is checked three times, and the last check answers for all.
    for key in ("4", "5", "1980"):
        page.keyboard.type(key)
        press(page, "Tab")
    for name, value in (("last_name", "Raman2"), ("email", "bad"), ("phone", "12")):
        page.fill(f"[name={name}]", value)
        press(page, "Tab")
    for name in ("last_name", "email", "phone"):
        expect(page.locator(f".sd-field:has([name={name}]) .sd-note-bad")).to_be_visible()


def test_a_late_check_preserves_text_in_a_field_already_left(page: Page, maya: KeyPerson) -> None:
    page.goto(person_edit_path(maya))
    paused: list[Route] = []
    page.route("**/edit/", lambda route: paused.append(route), times=1)
    page.fill("[name=first_name]", "O’Neil & Co")
    press(page, "Tab", "Shift+Tab", "End")
    page.keyboard.type("mpany")
    press(page, "Tab")
    release_request(page, paused)
    expect(page.get_by_text("“&” at position 8 isn’t allowed")).to_be_visible()
    expect(page.locator("[name=first_name]")).to_have_value("O’Neil & Company")


def test_a_report_shows_its_size_and_is_sent(page: Page, maya: KeyPerson, portal_service: Sandbox) -> None:
    page.goto(borrower_edit_path(maya))
    page.click("main summary")
    page.check("[name=with_asset_report]")
    page.click("text=Review changes >> nth=-1")
    report = {"name": "assets.json", "mimeType": "application/json", "buffer": b"[" + b" " * 9_998 + b"]"}
    page.set_input_files("[name=asset_report]", files=[report])
    expect(page.get_by_text("10,000 bytes")).to_be_visible()
    page.click("text=Send change")
    expect(page.get_by_text("1 not returned").first).to_be_visible()
    assert portal_service.world.received_report(maya.borrower_uuid, "asset_report_json_gzip")


def test_leaving_with_changes_asks_first(page: Page, maya: KeyPerson) -> None:
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.type), dialog.accept()))
    page.goto(borrower_edit_path(maya))
    page.locator("[name=email]").press_sequentially("x")
    page.goto("/borrowers/")
    assert dialogs == ["beforeunload"]


def test_typed_values_survive_signing_out_in_another_tab(page: Page, maya: KeyPerson) -> None:
    page.goto(borrower_edit_path(maya))
    page.fill("[name=phone]", "5125550199")
    page.fill("[name=email]", "new@bakery.example")
    expect(page.get_by_text("A 10-digit US number")).to_be_visible()
    page.context.clear_cookies(name=settings.SESSION_COOKIE_NAME)
    press(page, "Tab")
    expect(page.get_by_role("heading", name="Your session has ended")).to_be_focused()
    expect(page.locator("[name=email]")).to_have_value("new@bakery.example")
    expect(page.locator("[name=phone]")).to_have_value("(512) 555-0199")


def test_edit_steps_pass_axe(page: Page, maya: KeyPerson) -> None:
    problems: list[str] = []
    page.goto(person_edit_path(maya))
    page.click("main summary")
    page.check("[name=with_ssn]")
    page.fill("[name=last_name]", "Raman2")
    page.click("text=Review changes >> nth=-1")
    page.locator(".sd-errors").wait_for()
    problems += find_problems(page)
    page.fill("[name=last_name]", "Raman")
    answer = json.loads(Borrower.objects.get(uuid=maya.borrower_uuid).answer.body)
    answer["key_people"][0]["last_name"] = "Okafor"
    given.save_answer(answer)
    page.click("text=Review changes >> nth=-1")
    page.get_by_text("changed while you were editing").wait_for()
    problems += find_problems(page)
    page.check("[value=yours]")
    page.click("text=Review remaining changes")
    page.get_by_text("What will be sent").wait_for()
    page.fill("[name=reason]", "On the phone")
    problems += find_problems(page)
    page.fill("[name=ssn]", SSN)
    page.fill("[name=ssn_again]", SSN)
    page.click("text=Send 2 changes")
    page.get_by_text("Response").wait_for()
    problems += find_problems(page)
    assert problems == []
