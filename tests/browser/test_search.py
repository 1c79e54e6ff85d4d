"""The search box and the borrower list in a browser, by keyboard."""

import pytest
from playwright.sync_api import Page, expect

from portal.records.models import Borrower
from servicing.sandbox import Sandbox
from tests import given

pytestmark = pytest.mark.browser


@pytest.fixture
def borrowers(page: Page, portal_service: Sandbox) -> None:
    """Three borrowers on file."""
    for name, phone in (
        ("Harbor Bakery LLC", "5125550143"),
        ("Birch Farms LLC", "5125550144"),
        ("Acorn Inc", ""),
    ):
        given.borrower(portal_service, first_name=name, phone=phone or "5125550145")


def type_search(page: Page, text: str, option: str) -> None:
    """Type a search and wait until the option is suggested."""
    page.goto("/")
    page.keyboard.press("/")
    page.keyboard.type(text)
    expect(page.get_by_role("option", name=option)).to_be_visible()


def test_a_borrower_is_found_by_phone_and_opened_with_enter(page: Page, borrowers: None) -> None:
    page.goto("/")
    page.keyboard.press("/")
    page.keyboard.type("(512) 555-0144")
    expect(page.get_by_role("option", name="Birch Farms LLC")).to_have_attribute("aria-selected", "true")
    expect(page.get_by_role("combobox", name="Search")).to_have_attribute(
        "aria-activedescendant", "suggestion-0"
    )
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Birch Farms LLC", level=1)).to_be_visible()


def test_an_id_in_a_long_pasted_email_is_found(page: Page, portal_service: Sandbox) -> None:
    uuid = given.borrower(portal_service, first_name="Harbor Bakery LLC").uuid
    page.goto("/")
    page.keyboard.press("/")
    email = f"Dear team, {'please look into this. ' * 20}It is about {uuid}, thank you."
    page.evaluate(
        """text => {
            const clipboardData = new DataTransfer();
            clipboardData.setData("text/plain", text);
            document.activeElement.dispatchEvent(new ClipboardEvent("paste", { clipboardData, cancelable: true }));
        }""",
        email,
    )
    expect(page.get_by_role("option", name="Harbor Bakery LLC")).to_have_attribute("aria-selected", "true")


def test_enter_ignores_outdated_suggestions(page: Page, borrowers: None) -> None:
    type_search(page, "harbor", "Harbor Bakery LLC")
    page.keyboard.type(" of nobody")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Results for “harbor of nobody”")).to_be_visible()


def test_arrow_keys_reach_all_results(page: Page, borrowers: None) -> None:
    type_search(page, "llc", "All results")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Results for “llc”")).to_be_visible()


def test_search_tips_open_and_close(page: Page) -> None:
    page.goto("/")
    page.get_by_role("button", name="Search tips").press("Enter")
    expect(page.get_by_text("past_due:>0")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_text("past_due:>0")).to_be_hidden()


def test_typing_narrows_the_list(page: Page, borrowers: None) -> None:
    page.goto("/borrowers/?sort=name")
    page.get_by_role("searchbox", name="Find").press_sequentially("llc")
    expect(page.locator("#borrower-total")).to_have_text("2")
    expect(page.get_by_label("Active filters")).to_contain_text("“llc”")
    expect(page).to_have_url("/borrowers/?q=llc&sort=name")
    expect(page.locator("#live")).to_have_text("2 borrowers")


def test_sorting_keeps_the_focus_and_survives_filtering(page: Page, borrowers: None) -> None:
    page.goto("/borrowers/")
    page.get_by_role("link", name="Name", exact=True).press("Enter")
    expect(page.get_by_role("columnheader", name="Name", exact=True)).to_have_attribute(
        "aria-sort", "ascending"
    )
    expect(page.get_by_role("link", name="Name", exact=True)).to_be_focused()
    page.get_by_role("button", name="Filters").click()
    page.get_by_role("combobox", name="Entity").select_option("Limited liability company")
    expect(page.get_by_label("Active filters")).to_contain_text("Entity")
    assert "sort=name" in page.url


def test_keys_move_between_rows_and_open_them(page: Page, borrowers: None) -> None:
    page.goto("/borrowers/?sort=name")
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.get_by_role("link", name="Birch Farms LLC")).to_be_focused()
    page.keyboard.press("k")
    page.keyboard.press("o")
    expect(page.get_by_role("heading", name="Acorn Inc", level=1)).to_be_visible()


def test_a_row_menu_offers_a_new_application(page: Page, borrowers: None) -> None:
    page.goto("/borrowers/?sort=name")
    page.get_by_role("button", name="More for Acorn Inc").press("Enter")
    expect(page.get_by_role("link", name="New application")).to_be_visible()
    acorn = Borrower.objects.get(name="Acorn Inc")
    expect(page.get_by_role("link", name="New application")).to_have_attribute(
        "href", f"/borrowers/{acorn.uuid}/applications/new/"
    )
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="More for Acorn Inc")).to_be_focused()


def test_chosen_columns_persist(page: Page, borrowers: None) -> None:
    page.goto("/borrowers/?sort=name")
    page.locator("summary", has_text="Columns").press("Enter")
    page.get_by_label("Phone").uncheck()
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_role("columnheader", name="Phone")).to_be_hidden()
    page.goto("/borrowers/")
    expect(page.get_by_role("columnheader", name="Phone")).to_be_hidden()
