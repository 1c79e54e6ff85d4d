"""The book in a real browser: axe, the values of a bar on focus, and no sideways scrolling."""

import re

import pytest
from playwright.sync_api import Page, expect

from portal.records.models import Account
from servicing.sandbox import Sandbox
from tests import given
from tests.browser.axe import find_problems
from tests.portal.places import write_book

pytestmark = pytest.mark.browser


@pytest.fixture
def loan(portal_service: Sandbox) -> Account:
    """A loan that is past due on each of the last 90 days."""
    loan = given.loan(portal_service, given.borrower(portal_service))
    write_book(loan, days=90)
    return loan


def test_pages_pass_axe(page: Page, loan: Account) -> None:
    for address in ("/portfolio/", "/portfolio/accounts/", "/portfolio/print/"):
        page.goto(address)
        page.wait_for_load_state("networkidle")
        assert (address, find_problems(page)) == (address, [])


def test_a_bar_shows_its_values_on_focus_and_leads_to_its_day(page: Page, loan: Account) -> None:
    page.goto("/portfolio/")
    bar = page.locator(".sd-book-chart a").nth(40)
    words = bar.locator("text")
    expect(words).to_have_css("opacity", "0")
    bar.focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    expect(words).to_have_css("opacity", "1")
    expect(words).to_contain_text("1–29 $1,000.00")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"\?day=\d{4}-\d\d-\d\d$"))
    expect(page.locator(".sd-book-chart a")).to_have_count(41)
