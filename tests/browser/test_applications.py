"""Loan applications in a browser: opening them, comparing offers, and checks by axe."""

import re

import pytest
from playwright.sync_api import Page, expect

from portal.records.models import Application, Borrower
from servicing.sandbox import Sandbox
from tests import given
from tests.portal.applications.answers import offer, saved_application

pytestmark = pytest.mark.browser


@pytest.fixture
def borrower(portal_service: Sandbox) -> Borrower:
    return given.borrower(portal_service, first_name="Northwind Baking Co LLC")


@pytest.fixture
def compared(borrower: Borrower) -> Application:
    """An application with four offers, one of them with gaps."""
    gaps = {"installment": None, "interest_amount": None, "term": None, "maturity_date": None}
    return saved_application(
        borrower, offer(0), offer(1, apr=15.61), offer(2, amount=45000, apr=11), offer(3, **gaps)
    )


def test_an_application_is_opened_by_keyboard_alone(
    page: Page, portal_service: Sandbox, borrower: Borrower
) -> None:
    page.goto(f"/borrowers/{borrower.uuid}/")
    page.keyboard.press("a")
    page.wait_for_url("**/applications/new/")
    page.focus("[name=amount]")
    page.keyboard.type("25,000")
    expect(page.locator("#amount-words")).to_have_text("Twenty-five thousand dollars")
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="Don’t send")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Send application for $25,000.00")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Loan application")).to_be_visible()
    assert Application.objects.get().amount == 25000


def test_closing_the_confirmation_sends_nothing(
    page: Page, portal_service: Sandbox, borrower: Borrower
) -> None:
    page.goto(f"/borrowers/{borrower.uuid}/applications/new/")
    page.fill("[name=amount]", "25,000")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("textbox", name="Amount requested")).to_be_focused()
    assert portal_service.calls == []


def test_a_corrected_amount_clears_the_error_behind_the_confirmation(page: Page, borrower: Borrower) -> None:
    page.goto(f"/borrowers/{borrower.uuid}/applications/new/")
    review = page.get_by_role("button", name="Review and send")
    review.press("Enter")
    expect(page.locator(".sd-errors")).to_be_focused()
    page.fill("[name=amount]", "25,000")
    review.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    expect(page.locator(".sd-errors, .sd-field-bad")).to_have_count(0)
    expect(page.locator("#amount-words")).to_have_text("Twenty-five thousand dollars")
    page.keyboard.press("Escape")
    expect(review).to_be_focused()
    expect(page.locator("[name=amount]")).to_have_value("25,000")


def test_a_rejection_closes_the_dialog_and_focuses_the_error(
    page: Page, portal_service: Sandbox, borrower: Borrower
) -> None:
    portal_service.fail_next("applications.submit", status=422, message="amount is above your limit")
    page.goto(f"/borrowers/{borrower.uuid}/applications/new/")
    page.fill("[name=amount]", "25,000")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Send application for $25,000.00").click()
    expect(page.locator(".sd-errors")).to_contain_text("amount is above your limit")
    expect(page.locator(".sd-errors")).to_be_focused()
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_lost_answer_leads_to_the_page_of_the_request(
    page: Page, portal_service: Sandbox, borrower: Borrower
) -> None:
    portal_service.fail_next("applications.submit", html=True)
    page.goto(f"/borrowers/{borrower.uuid}/applications/new/")
    page.fill("[name=amount]", "25,000")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Send application for $25,000.00").click()
    page.wait_for_url("**/audit/writes/**")
    expect(page.get_by_role("main")).to_contain_text("Outcome unknown")
    page.reload()
    assert len(portal_service.calls) == 1


def test_offers_are_sorted_chosen_and_preferred(page: Page, compared: Application) -> None:
    page.goto(compared.get_absolute_url())
    heads = page.get_by_role("columnheader")
    page.get_by_role("link", name="APR", exact=True).click()
    expect(heads.nth(1)).to_contain_text("Offer C")
    expect(page).to_have_url(f"{compared.get_absolute_url()}?sort=apr")
    page.get_by_text("Choose offers").click()
    page.get_by_role("checkbox", name="Offer A").check()
    page.get_by_role("checkbox", name="Offer C").check()
    page.get_by_role("button", name="Apply").click()
    expect(heads).to_have_count(3)
    page.get_by_role("link", name="Only differing rows").click()
    expect(page.get_by_role("rowheader", name="Start")).to_have_count(0)
    page.get_by_role("link", name="Mark as preferred offer C").click()
    expect(page.get_by_label("Reason")).to_be_focused()
    page.get_by_label("Reason").fill("Cheapest in the end")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Offer C is preferred by Servicer (servicer)")).to_be_visible()
    expect(heads).to_have_count(3)
    page.get_by_role("link", name="Print offer sheet").click()
    expect(page).to_have_title(re.compile("^Offer sheet"))
    expect(heads).to_have_text([re.compile(name) for name in ("Row", "Offer C", "Offer A")])
    expect(page.get_by_text("Refresh first")).to_have_count(0)


def test_four_offers_fit_a_small_laptop(page: Page, compared: Application) -> None:
    page.set_viewport_size({"width": 1024, "height": 900})
    page.goto(compared.get_absolute_url())
    region = page.get_by_role("region", name="Offers side by side")
    inner, outer = region.evaluate("each => [each.scrollWidth, each.clientWidth]")
    assert inner <= outer


def test_offers_are_cards_on_a_narrow_screen(page: Page, compared: Application) -> None:
    page.set_viewport_size({"width": 390, "height": 900})
    page.goto(compared.get_absolute_url())
    expect(page.get_by_role("table")).to_have_count(0)
    expect(page.get_by_role("article")).to_have_count(4)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
