"""Onboarding as hands do it: by keyboard alone, in haste, and under the eyes of axe."""

import re

import pytest
from playwright.sync_api import Page, expect

from portal.borrowers.models import Draft
from servicing.sandbox import Sandbox
from tests.browser.axe import complaints

pytestmark = pytest.mark.browser


def type_in(page: Page, *keys: str) -> None:
    """Words are typed, names in capitals with a plus are pressed."""
    for key in keys:
        page.keyboard.press(key[1:]) if key.startswith("+") else page.keyboard.type(key)


def reach_review(page: Page) -> None:
    """Every step but the last, by keyboard alone."""
    page.goto("/borrowers/new/")
    page.focus("[name=first_name]")
    type_in(
        page,
        "Keys & Sons LLC",
        "+Tab",
        "+ArrowDown",
        "+Tab",
        "office@keys.example",
        "+Tab",
        "5125550161",
        "+Enter",
    )
    page.wait_for_url("**/address/")
    page.focus("[name=line_1]")
    type_in(page, "1 Main St", "+Tab", "+Tab", "+Tab", "Austin", "+Tab", "texas", "+Tab", "78702", "+Enter")
    page.wait_for_url("**/people/")
    page.focus("[name=person-0-first_name]")
    type_in(page, "Ana", "+Tab", "+Tab", "Silva", "+Tab", "Own", *["+Tab"] * 5, "ana@keys.example", "+Tab")
    type_in(page, "5125550162", "+Enter")
    page.wait_for_url("**/reports/")
    page.focus("text=Save and continue")
    type_in(page, "+Enter")
    page.wait_for_url("**/review/")
    expect(page).to_have_title(re.compile("^New borrower: Review"))


def test_a_borrower_is_onboarded_by_keyboard_alone(page: Page, portal_service: Sandbox) -> None:
    reach_review(page)
    page.focus("[name=ein]")
    type_in(page, "471029384", "+Tab", "471029384", "+Tab", "+Space")
    expect(page.locator("[name=ein]")).to_have_value("47-1029384")
    type_in(page, "+Enter")
    expect(page.locator(".sd-toast")).to_contain_text("Keys & Sons LLC was created.")
    assert len(portal_service.world.users()) == 1


def test_whoever_is_faster_than_the_line_is_told_of_every_field(page: Page, portal_service: Sandbox) -> None:
    page.goto("/borrowers/new/")
    line = {"offline": False, "latency": 300, "downloadThroughput": -1, "uploadThroughput": -1}
    page.context.new_cdp_session(page).send("Network.emulateNetworkConditions", line)
    page.focus("[name=first_name]")
    type_in(page, "Keys LLC", "+Tab", "+ArrowDown", "+ArrowDown", "+Tab", "office@", "+Tab", "12", "+Tab")
    expect(page.locator(".sd-field:has([name=email]) .sd-note-bad")).to_be_visible()
    expect(page.locator(".sd-field:has([name=phone]) .sd-note-bad")).to_be_visible()


def test_a_double_click_sends_once(page: Page, portal_service: Sandbox) -> None:
    reach_review(page)
    page.fill("[name=ein]", "471029384")
    page.fill("[name=ein_again]", "471029384")
    page.check("[name=checked]")
    page.dblclick("text=Create Keys")
    expect(page.locator("h1")).to_have_text("Keys & Sons LLC")
    assert len(portal_service.calls) == 1


def test_a_form_on_its_way_is_kept_from_being_sent_again(page: Page, portal_service: Sandbox) -> None:
    reach_review(page)
    submit = "new SubmitEvent('submit', {bubbles: true, cancelable: true})"
    assert page.locator("form#step").evaluate(f"form => [1, 2].map(() => form.dispatchEvent({submit}))") == [
        True,
        False,
    ]


def test_a_field_tells_its_rule_as_it_is_left(page: Page, portal_service: Sandbox) -> None:
    page.goto("/borrowers/new/")
    page.fill("[name=first_name]", "AT&T")
    page.keyboard.press("Tab")
    expect(page.locator(".sd-note-warn")).to_contain_text("“&” at position 3")
    expect(page.locator("#requirements .sd-met").first).to_contain_text("A legal business name")
    expect(page.locator("[name=entity]").first).to_be_focused()


def test_a_pause_saves_a_draft_that_a_reload_finds(page: Page, portal_service: Sandbox) -> None:
    page.clock.install()
    page.goto("/borrowers/new/")
    page.fill("[name=first_name]", "Paused LLC")
    page.clock.run_for(11_000)
    expect(page.locator("#draft-state")).to_contain_text("Draft saved")
    page.reload()
    expect(page.locator("[name=first_name]")).to_have_value("Paused LLC")
    assert Draft.objects.count() == 1


def test_axe_finds_nothing_on_a_step_full_of_errors(page: Page, portal_service: Sandbox) -> None:
    reach_review(page)
    page.click("text=Create Keys")
    assert complaints(page) == []
    page.goto(page.url.replace("/review/", "/people/"))
    page.click(".sd-key-person-edit")
    page.uncheck("[name=person-0-same_address]")
    page.click("text=Add another person")
    expect(page.locator("#person-1")).to_be_focused()
    page.click("text=Save and continue")
    expect(page.locator(".sd-errors")).to_be_focused()
    assert complaints(page) == []
