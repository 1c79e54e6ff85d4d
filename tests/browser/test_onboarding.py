"""Onboarding in a browser: by keyboard alone, with fast typing and double clicks, and checked by axe."""

import re

import pytest
from django.test import Client as Browser
from playwright.sync_api import Page, expect

from portal.borrowers.models import Draft
from servicing.sandbox import Sandbox
from tests.browser.axe import find_problems
from tests.portal.borrowers.wizard import ELENA, PRIYA, Wizard

pytestmark = pytest.mark.browser


def type_keys(page: Page, *keys: str) -> None:
    """Type each text, or press the key whose name follows a plus sign."""
    for key in keys:
        page.keyboard.press(key[1:]) if key.startswith("+") else page.keyboard.type(key)


def reach_review(page: Page) -> None:
    """Fill in every step before the review, by keyboard alone."""
    page.goto("/borrowers/new/")
    page.focus("[name=first_name]")
    type_keys(
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
    type_keys(page, "1 Main St", "+Tab", "+Tab", "+Tab", "Austin", "+Tab", "texas", "+Tab", "78702", "+Enter")
    page.wait_for_url("**/people/")
    page.focus("[name=person-0-first_name]")
    type_keys(page, "Ana", "+Tab", "+Tab", "Silva", "+Tab", "Own", *["+Tab"] * 5, "ana@keys.example", "+Tab")
    type_keys(page, "5125550162", "+Enter")
    page.wait_for_url("**/reports/")
    page.focus("text=Save and continue")
    type_keys(page, "+Enter")
    page.wait_for_url("**/review/")
    expect(page).to_have_title(re.compile("^New borrower: Review"))


def test_a_borrower_is_onboarded_by_keyboard_alone(page: Page, portal_service: Sandbox) -> None:
    reach_review(page)
    page.focus("[name=ein]")
    type_keys(page, "471029384", "+Tab", "471029384", "+Tab", "+Space")
    expect(page.locator("[name=ein]")).to_have_value("47-1029384")
    type_keys(page, "+Enter")
    expect(page.locator(".sd-toast")).to_contain_text("Keys & Sons LLC was created.")
    assert len(portal_service.world.users()) == 1


def test_fast_typing_on_a_slow_connection_checks_every_field(page: Page, portal_service: Sandbox) -> None:
    page.goto("/borrowers/new/")
    connection = {"offline": False, "latency": 300, "downloadThroughput": -1, "uploadThroughput": -1}
    page.context.new_cdp_session(page).send("Network.emulateNetworkConditions", connection)
    page.focus("[name=first_name]")
    type_keys(page, "Keys LLC", "+Tab", "+ArrowDown", "+ArrowDown", "+Tab", "office@", "+Tab", "12", "+Tab")
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


def test_a_submitted_form_cannot_be_submitted_again(page: Page, portal_service: Sandbox) -> None:
    reach_review(page)
    submit = "new SubmitEvent('submit', {bubbles: true, cancelable: true})"
    assert page.locator("form#step").evaluate(f"form => [1, 2].map(() => form.dispatchEvent({submit}))") == [
        True,
        False,
    ]


def test_leaving_a_field_checks_it(page: Page, portal_service: Sandbox) -> None:
    page.goto("/borrowers/new/")
    page.fill("[name=first_name]", "AT&T")
    page.keyboard.press("Tab")
    expect(page.locator(".sd-note-warn")).to_contain_text("“&” at position 3")
    expect(page.locator("#requirements .sd-met").first).to_contain_text("A legal business name")
    expect(page.locator("[name=entity]").first).to_be_focused()


def test_a_draft_is_saved_on_a_pause_and_restored_on_reload(page: Page, portal_service: Sandbox) -> None:
    page.clock.install()
    page.goto("/borrowers/new/")
    page.fill("[name=first_name]", "Paused LLC")
    page.clock.run_for(11_000)
    expect(page.locator("#draft-state")).to_contain_text("Draft saved")
    page.reload()
    expect(page.locator("[name=first_name]")).to_have_value("Paused LLC")
    assert Draft.objects.count() == 1


def test_steps_with_errors_pass_axe(page: Page, portal_service: Sandbox) -> None:
    reach_review(page)
    page.click("text=Create Keys")
    assert find_problems(page) == []
    page.goto(page.url.replace("/review/", "/people/"))
    page.click(".sd-key-person-edit")
    page.uncheck("[name=person-0-same_address]")
    page.click("text=Add another person")
    expect(page.locator("#person-1")).to_be_focused()
    page.click("text=Save and continue")
    expect(page.locator(".sd-errors")).to_be_focused()
    assert find_problems(page) == []


LONGEST = ELENA | {
    "first_name": "Maximiliana Konstantina",
    "last_name": "Featherstonehaugh-Wolfeschlegelstein",
}


def test_a_person_is_removed_after_a_question(page: Page, portal_service: Sandbox, servicer: Browser) -> None:
    wizard = Wizard(servicer).fill(LONGEST, PRIYA)
    page.goto(f"{wizard.url}people/")
    page.get_by_label("Remove person 2").click()
    expect(page.get_by_text("Remove Priya Raman?")).to_be_visible()
    assert len(Draft.objects.get().typed("people")) == 2
    page.get_by_role("button", name="Remove for good").click()
    expect(page.get_by_label("Remove person 1")).to_be_disabled()
    assert [person["first_name"] for person in Draft.objects.get().typed("people")] == [
        "Maximiliana Konstantina"
    ]


def test_a_draft_is_discarded_after_a_question(
    page: Page, portal_service: Sandbox, servicer: Browser
) -> None:
    page.goto(f"{Wizard(servicer).fill().url}address/")
    page.get_by_text("Discard draft").click()
    assert Draft.objects.exists()
    page.get_by_role("button", name="Discard for good").click()
    expect(page.locator(".sd-toast")).to_contain_text("discarded")
    assert not Draft.objects.exists()


def test_long_names_fit_a_small_laptop(page: Page, portal_service: Sandbox, servicer: Browser) -> None:
    def top(name: str) -> float:
        return float(page.locator(f"[name={name}]").evaluate("field => field.getBoundingClientRect().top"))

    wizard = Wizard(servicer).fill(LONGEST)
    page.set_viewport_size({"width": 1024, "height": 768})
    page.goto(f"{wizard.url}people/")
    name = page.locator(".sd-key-person-who b")
    longest = name.evaluate("name => Math.max(...[...name.getClientRects()].map(line => line.width))")
    assert longest > 250
    page.click(".sd-key-person-edit")
    assert top("person-0-first_name") == top("person-0-last_name")
    page.goto(f"{wizard.url}review/")
    assert top("ssn_0") == top("ssn_0_again")
