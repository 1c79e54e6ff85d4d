"""Editing as hands do it: by keyboard alone, with files, in two windows, and under the eyes of axe."""

import json
import re
from datetime import timedelta

import pytest
from django.conf import LazySettings, settings
from playwright.sync_api import Page, Route, expect

from portal.notes.models import FollowUp, Note
from portal.registry.models import Kind, Record
from portal.runtime.business_date import business_date
from servicing.sandbox import Sandbox
from tests import given
from tests.browser.axe import complaints
from tests.browser.conftest import press

pytestmark = pytest.mark.browser
SSN = "219099999"


@pytest.fixture
def maya(portal_service: Sandbox, settings: LazySettings) -> Record:
    settings.APPROVAL_ACTS = []  # A second person has tests of their own.
    owner = given.borrower(portal_service)
    return Record.objects.get(kind=Kind.KEY_PERSON, borrower_uuid=owner.uuid)


def of_borrower(record: Record) -> str:
    return f"/borrowers/{record.borrower_uuid}/edit/"


def of_person(record: Record) -> str:
    return f"/borrowers/{record.borrower_uuid}/people/{record.uuid}/edit/"


RING = "title => getComputedStyle(title).outlineStyle"


def let_go(page: Page, held: list[Route]) -> None:
    """Send on the request that was held, once the page has made it, and wait for its answer."""
    for _ in range(500):
        if held:
            break
        page.wait_for_timeout(20)
    request = held[0].request
    with page.expect_response(lambda answer: answer.request == request):
        held.pop().continue_()


def test_title_and_ssn_are_changed_by_keyboard_alone(
    page: Page, maya: Record, portal_service: Sandbox
) -> None:
    page.goto(of_person(maya))
    page.focus("[name=title]")
    page.keyboard.type("Director")
    page.focus("main summary")
    press(page, "Enter", "Tab", "Tab", "Tab", "Tab", "Space", "Enter")
    title = page.get_by_role("heading", name="Review changes to")
    expect(title).to_be_focused()
    assert title.evaluate(RING) == "solid"
    page.focus("[name=ssn]")
    page.keyboard.type(SSN)
    press(page, "Tab")
    page.keyboard.type(SSN)
    press(page, "Tab")
    page.keyboard.type("On the phone")
    press(page, "Tab", "Tab", "Tab", "Enter")
    expect(page.locator("#toasts")).to_contain_text("Sent: 1 confirmed, 1 not returned")
    assert portal_service.world.received_ssn(maya.uuid) == SSN


def test_an_individual_is_edited_from_home_until_confirmed(
    page: Page, maya: Record, portal_service: Sandbox
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
    expect(page.locator("#toasts")).to_contain_text("Sent: 1 confirmed, 1 not returned")
    rows = page.get_by_role("row")
    expect(rows.filter(has_text="Phone")).to_contain_text("Confirmed")
    expect(rows.filter(has_text="Date of birth")).to_contain_text("Not returned")
    body = json.loads(portal_service.calls[-1].body or "{}")
    assert body == {"phone": "5125550143", "dob": "1987/04/19"}


def test_a_review_keeps_its_buttons_and_its_values_in_line(page: Page, maya: Record) -> None:
    page.goto(of_borrower(maya))
    page.fill("[name=phone]", "(512) 555-0188")
    page.get_by_role("button", name="Review changes").click()
    expect(page.get_by_role("button", name="Send 1 change")).to_be_visible()
    title = page.get_by_role("heading", name="Review changes to")
    expect(title).to_be_focused()
    assert title.evaluate(RING) == "none"
    for width, line in ((1440, ".sd-form-foot .sd-btn"), (390, ".sd-changes td")):
        page.set_viewport_size({"width": width, "height": 900})
        tops = page.locator(line).evaluate_all("all => all.map(one => one.getBoundingClientRect().top)")
        assert (width, len(tops) > 1, len(set(tops))) == (width, True, 1)


def test_a_changed_field_says_what_it_was_and_goes_back(page: Page, maya: Record) -> None:
    page.goto(of_borrower(maya))
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


def test_a_phone_is_changed_on_the_borrower_page_in_two_clicks(
    page: Page, maya: Record, portal_service: Sandbox
) -> None:
    borrower = f"/borrowers/{maya.borrower_uuid}/"
    page.goto(borrower)
    title = page.title()
    change = page.locator(".sd-factline").get_by_role("link", name="Change phone")
    assert change.get_attribute("href") == of_borrower(maya)  # Without the script.
    change.click()
    dialog = page.get_by_role("dialog", name="Change phone of")
    expect(dialog.get_by_label("Phone")).to_be_focused()
    assert complaints(page) == []
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
    expect(dialog.get_by_role("row", name="Phone")).to_contain_text("Sent as 5125550199")
    assert complaints(page) == []
    dialog.get_by_role("button", name="Back to edit").click()
    expect(dialog.get_by_label("Phone")).to_have_value("(512) 555-0199")
    dialog.get_by_label("Phone").press("Enter")
    dialog.get_by_role("button", name="Send 1 change").click()
    expect(page.locator("#toasts")).to_contain_text("Sent: 1 confirmed")
    expect(page).to_have_url(re.compile(f"{borrower}$"))
    expect(page.locator(".sd-factline")).to_contain_text("(512) 555-0199")
    assert [call.operation for call in portal_service.calls] == ["borrowers.update"]


def test_a_note_is_one_click_and_ctrl_enter(page: Page, maya: Record) -> None:
    page.goto(f"/borrowers/{maya.borrower_uuid}/?tab=notes")
    page.get_by_role("link", name="Add note").click()
    expect(page.get_by_role("dialog").get_by_label("Note", exact=True)).to_be_focused()
    assert complaints(page) == []
    page.keyboard.type("Calls only after noon.")
    press(page, "Control+Enter")
    expect(page.locator("#toasts")).to_contain_text("Note added")
    assert Note.objects.get().text == "Calls only after noon."


def test_a_follow_up_takes_a_usual_day_with_a_click(page: Page, maya: Record) -> None:
    today = business_date()
    page.goto(f"/borrowers/{maya.borrower_uuid}/?tab=notes")
    page.get_by_role("link", name="Add a follow-up").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Task")).to_be_focused()
    assert complaints(page) == []
    dialog.get_by_role("button", name="Add follow-up").click()
    expect(dialog.get_by_role("alert")).to_contain_text("Fix 2 fields")
    dialog.get_by_label("Task").fill("Ask for the statement")
    dialog.get_by_role("button", name="Tomorrow").click()
    expect(dialog.get_by_label("Due", exact=True)).to_have_value(f"{today + timedelta(1)}")
    if today.weekday():  # Else Monday is in a week.
        dialog.get_by_role("button", name="One week").click()
    else:
        dialog.get_by_role("button", name="Monday").click()
    box = dialog.bounding_box()
    assert box
    assert box["width"] <= 560
    dialog.get_by_role("button", name="Add follow-up").click()
    expect(page.locator("#toasts")).to_contain_text("Follow-up added")
    assert FollowUp.objects.get().due == today + timedelta(7)


def test_going_back_from_the_check_asks_first(page: Page, maya: Record) -> None:
    page.goto(of_borrower(maya))
    page.goto(of_person(maya))
    page.fill("[name=last_name]", "Raman")
    press(page, "Enter")
    heading = page.get_by_role("heading", name="Review changes to")
    expect(heading).to_be_focused()
    with page.expect_event("dialog") as asked:
        page.evaluate("setTimeout(() => history.back())")
    assert asked.value.type == "beforeunload"
    asked.value.dismiss()
    expect(heading).to_be_visible()


def test_enter_in_a_field_checks_and_then_sends(page: Page, maya: Record, portal_service: Sandbox) -> None:
    page.goto(of_borrower(maya))
    page.fill("[name=email]", "new@bakery.example")
    press(page, "Enter")
    page.focus("text=Send 1 change")
    expect(page).to_have_title(re.compile(r"^Review changes to .+ · "))
    press(page, "Enter")
    expect(page.get_by_role("heading", name="Response")).to_be_visible()
    expect(page).to_have_title(re.compile(r"^Changes to .+ · "))
    assert [call.operation for call in portal_service.calls] == ["borrowers.update"]


def test_what_is_said_of_a_field_waits_until_the_button_is_let_go(page: Page, maya: Record) -> None:
    page.goto(of_person(maya))
    page.fill("[name=last_name]", "Raman2")
    page.locator("text=Review changes >> nth=-1").hover()
    page.mouse.down()
    page.wait_for_timeout(500)  # As long as a slow hand; what were said now would move the button away.
    page.mouse.up()
    expect(page.locator(".sd-errors")).to_be_visible()


def test_an_answer_that_comes_while_a_button_is_pressed_waits_too(page: Page, maya: Record) -> None:
    page.goto(of_person(maya))
    held: list[Route] = []
    page.route("**/edit/", lambda route: held.append(route), times=1)
    page.fill("[name=last_name]", "O’Neil & Co")
    press(page, "Tab")
    button = page.locator("text=Review changes >> nth=-1")
    button.hover()
    page.mouse.down()
    before = button.bounding_box()
    let_go(page, held)
    page.wait_for_timeout(500)
    assert button.bounding_box() == before
    page.mouse.move(0, 0)
    page.mouse.up()
    expect(page.get_by_text("“&” at position 8 isn’t allowed")).to_be_visible()


def test_a_day_that_is_half_typed_stays_while_something_is_pressed(page: Page) -> None:
    page.goto("/borrowers/new/")
    held: list[Route] = []
    page.route("**/borrowers/new/**", lambda route: held.append(route), times=1)
    page.get_by_label("Month").first.fill("12")
    press(page, "Tab")
    page.locator("h1").hover()
    page.mouse.down()
    let_go(page, held)
    page.mouse.up()
    page.wait_for_timeout(300)
    expect(page.get_by_label("Month").first).to_have_value("12")


def test_who_comes_back_and_changes_nothing_is_told_on_leaving(page: Page, maya: Record) -> None:
    page.goto(of_person(maya))
    held: list[Route] = []
    page.route("**/edit/", lambda route: held.append(route), times=1)
    page.fill("[name=first_name]", "O’Neil & Co")
    press(page, "Tab", "Shift+Tab")
    let_go(page, held)
    press(page, "Tab")
    expect(page.get_by_text("“&” at position 8 isn’t allowed")).to_be_visible()


def test_what_is_said_of_a_field_comes_after_a_press_elsewhere(page: Page, maya: Record) -> None:
    page.goto(of_person(maya))
    page.fill("[name=last_name]", "O’Neil & Co")
    page.locator("h1").click(delay=500)
    expect(page.get_by_text("“&” at position 8 isn’t allowed")).to_be_visible()


def test_a_name_is_tutored_as_it_is_left(page: Page, maya: Record) -> None:
    page.goto(of_person(maya))
    page.fill("[name=last_name]", "O’Neil & Co")
    press(page, "Tab")
    expect(page.get_by_text("“&” at position 8 isn’t allowed")).to_be_visible()
    page.fill("[name=last_name]", "O’Neil and Co")
    press(page, "Tab")
    expect(page.get_by_text("Accepted")).to_be_visible()


def test_what_is_typed_while_the_answer_comes_is_kept(page: Page, maya: Record) -> None:
    page.goto(of_person(maya))
    held: list[Route] = []
    page.route("**/edit/", lambda route: held.append(route))
    page.fill("[name=first_name]", "O’Neil & Co")
    press(page, "Tab", "Shift+Tab", "End")
    page.keyboard.type("mpany")
    let_go(page, held)
    page.unroute("**/edit/")
    press(page, "Tab")
    expect(page.get_by_text("“&” at position 8 isn’t allowed")).to_be_visible()
    expect(page.locator("[name=first_name]")).to_have_value("O’Neil & Company")


def test_whoever_is_faster_than_the_line_is_told_of_every_field(page: Page, maya: Record) -> None:
    page.goto(of_person(maya))
    line = {"offline": False, "latency": 300, "downloadThroughput": -1, "uploadThroughput": -1}
    page.context.new_cdp_session(page).send("Network.emulateNetworkConditions", line)
    page.click("main summary")
    page.focus("[name=dob_month]")  # Three checks of one field, which the last one answers for all.
    for key in ("4", "5", "1980"):
        page.keyboard.type(key)
        press(page, "Tab")
    for name, value in (("last_name", "Raman2"), ("email", "bad"), ("phone", "12")):
        page.fill(f"[name={name}]", value)
        press(page, "Tab")
    for name in ("last_name", "email", "phone"):
        expect(page.locator(f".sd-field:has([name={name}]) .sd-note-bad")).to_be_visible()


def test_what_was_typed_before_the_answer_came_is_kept(page: Page, maya: Record) -> None:
    page.goto(of_person(maya))
    held: list[Route] = []
    page.route("**/edit/", lambda route: held.append(route), times=1)
    page.fill("[name=first_name]", "O’Neil & Co")
    press(page, "Tab", "Shift+Tab", "End")
    page.keyboard.type("mpany")
    press(page, "Tab")
    let_go(page, held)
    expect(page.get_by_text("“&” at position 8 isn’t allowed")).to_be_visible()
    expect(page.locator("[name=first_name]")).to_have_value("O’Neil & Company")


def test_a_report_is_measured_and_stays_chosen(page: Page, maya: Record, portal_service: Sandbox) -> None:
    page.goto(of_borrower(maya))
    page.click("main summary")
    page.check("[name=with_asset_report]")
    page.click("text=Review changes >> nth=-1")
    report = {"name": "assets.json", "mimeType": "application/json", "buffer": b"[" + b" " * 9_998 + b"]"}
    page.set_input_files("[name=asset_report]", files=[report])
    expect(page.get_by_text("10,000 bytes")).to_be_visible()
    page.click("text=Send 1 change")
    expect(page.get_by_text("Sent: 1 not returned").first).to_be_visible()
    assert portal_service.world.received_report(maya.borrower_uuid, "asset_report_json_gzip")


def test_leaving_with_changes_asks_first(page: Page, maya: Record) -> None:
    asked: list[str] = []
    page.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.accept()))
    page.goto(of_borrower(maya))
    page.locator("[name=email]").press_sequentially("x")
    page.goto("/borrowers/")
    assert asked == ["beforeunload"]


def test_what_was_typed_stays_when_another_tab_signs_out(page: Page, maya: Record) -> None:
    page.goto(of_borrower(maya))
    page.fill("[name=phone]", "5125550199")
    page.fill("[name=email]", "new@bakery.example")
    expect(page.get_by_text("A 10-digit US number")).to_be_visible()
    page.context.clear_cookies(name=settings.SESSION_COOKIE_NAME)
    press(page, "Tab")
    expect(page.get_by_role("heading", name="Your session has ended")).to_be_focused()
    expect(page.locator("[name=email]")).to_have_value("new@bakery.example")
    expect(page.locator("[name=phone]")).to_have_value("(512) 555-0199")


def test_axe_finds_nothing_on_any_step(page: Page, maya: Record) -> None:
    found: list[str] = []
    page.goto(of_person(maya))
    page.click("main summary")
    page.check("[name=with_ssn]")
    page.fill("[name=last_name]", "Raman2")
    page.click("text=Review changes >> nth=-1")
    page.locator(".sd-errors").wait_for()
    found += complaints(page)
    page.fill("[name=last_name]", "Raman")
    told = json.loads(Record.objects.get(uuid=maya.borrower_uuid).answer)
    told["key_people"][0]["last_name"] = "Okafor"
    given.save_answer(told)
    page.click("text=Review changes >> nth=-1")
    page.get_by_text("changed while you were editing").wait_for()
    found += complaints(page)
    page.check("[value=yours]")
    page.click("text=Review remaining changes")
    page.get_by_text("What will be sent").wait_for()
    page.fill("[name=reason]", "On the phone")
    found += complaints(page)
    page.fill("[name=ssn]", SSN)
    page.fill("[name=ssn_again]", SSN)
    page.click("text=Send 2 changes")
    page.get_by_text("Response").wait_for()
    found += complaints(page)
    assert found == []
