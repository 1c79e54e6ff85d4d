"""A working day in a browser: by keyboard alone, without JavaScript, and checked by axe."""

import re
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal

import pytest
from django.conf import settings
from django.utils import timezone
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from portal.accounts.roles import Role
from portal.records.models import Account, Application, Borrower, Kind, Repayment
from servicing.sandbox import Sandbox
from tests import given
from tests.browser.conftest import press, tab_to
from tests.conftest import browser_of
from tests.portal.pages import panel

pytestmark = pytest.mark.browser
NAME = "Northwind Baking Co LLC"
OFFER = re.compile("^Offer [A-Z]")
SEND = "Send application for $25,000.00"


@pytest.fixture
def returned(portal_service: Sandbox) -> Account:
    """A payment that was returned after posting, and two that weren't."""
    loan = given.loan(portal_service, given.borrower(portal_service, first_name=NAME))
    today = timezone.localdate()
    for days in (40, 70):
        portal_service.world.repayment(
            loan.uuid, amount="250.10", effective_date=str(today - timedelta(days=days))
        )
    payment = portal_service.world.repayment(loan.uuid, amount="310.00", effective_date=str(today))
    for status, error in (("SUCCEEDED", None), ("FAILED_AFTER_SUCCESS", "R01 - Insufficient funds")):
        portal_service.world.amend(payment["uuid"], status=status, error_description=error)
        panel(browser_of(Role.VIEWER), f"{loan.get_absolute_url()}?refresh=1", "loan")
    return Repayment.objects.get(uuid=payment["uuid"])


@pytest.fixture
def plain_page(chromium: Browser, live_server: LiveServer) -> Iterator[Page]:
    """A page without JavaScript, signed in as a servicer."""
    context = chromium.new_context(base_url=live_server.url, java_script_enabled=False)
    session = browser_of(Role.SERVICER).cookies[settings.SESSION_COOKIE_NAME].value
    context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": live_server.url}])
    yield context.new_page()
    context.close()


def test_the_day_works_by_keyboard_alone(page: Page, returned: Account) -> None:
    keys = page.keyboard
    page.goto("/")
    keys.press("/")
    keys.type("northwind")
    # Wait for the suggestions of the whole text: Enter opens the best match only of those.
    expect(
        page.locator("#suggestions[data-query='northwind']").get_by_role("option", name=NAME)
    ).to_be_visible()
    keys.press("Enter")
    expect(page.get_by_role("heading", name=NAME)).to_be_visible()

    press(page, "a")
    tab_to(page, page.locator("[name=amount]"))
    keys.type("25,000")
    expect(page.locator("#amount-words")).to_have_text("Twenty-five thousand dollars")
    keys.press("Enter")
    expect(page.get_by_role("link", name="Don’t send")).to_be_focused()
    tab_to(page, page.get_by_role("button", name=SEND))
    keys.press("Enter")
    expect(page.get_by_role("heading", name="Loan application")).to_be_visible()

    expect(page.get_by_role("columnheader", name=OFFER)).to_have_count(4)
    rows = page.locator(".sd-offers tbody tr")
    before = rows.count()
    expect(page.get_by_text("identical rows hidden")).to_be_visible()
    tab_to(page, page.get_by_role("link", name="Show all rows"))
    keys.press("Enter")
    expect(page.get_by_role("link", name="Only differing rows")).to_be_focused()
    assert rows.count() > before
    tab_to(page, page.get_by_role("link", name="APR", exact=True))
    keys.press("Enter")
    expect(page.locator(".sd-offers tr", has_text="APR").locator("td").first).to_contain_text("lowest APR")

    press(page, "g", "r")
    expect(page.get_by_role("heading", name="Repayments")).to_be_visible()
    press(page, "j", "o")
    side = page.get_by_role("complementary", name="Repayment $310.00")
    expect(side.get_by_role("heading", name="Repayment $310.00")).to_be_focused()
    expect(side).to_contain_text("The service says: R01 - Insufficient funds")
    expect(side).to_contain_text("First seen as succeeded")
    expect(side).to_contain_text("Then seen as returned after posting")
    expect(page.locator(".sd-repayments [data-row]")).to_have_count(3)
    assert f"payment={returned.uuid}" in page.url
    keys.press("Escape")
    expect(side).to_have_count(0)
    expect(page.locator(f"#open-{returned.uuid}")).to_be_focused()
    page.go_back()
    expect(side).to_be_visible()


def test_the_day_works_without_javascript(plain_page: Page, returned: Account) -> None:
    page = plain_page
    page.goto(f"/borrowers/{returned.borrower_uuid}/")
    page.get_by_role("link", name="New application").click()
    page.get_by_label("Amount requested").fill("25,000")
    page.get_by_role("button", name="Review and send").click()
    expect(page.get_by_text("Twenty-five thousand dollars, for Northwind")).to_be_visible()
    page.get_by_role("button", name=SEND).click()
    expect(page.get_by_role("heading", name="Loan application")).to_be_visible()
    assert Application.objects.get().amount == 25000

    expect(page.get_by_role("columnheader", name=OFFER)).to_have_count(4)
    expect(page.get_by_text("identical rows hidden")).to_be_visible()
    page.get_by_role("link", name="Show all rows").click()
    expect(page.get_by_text("identical rows hidden")).to_have_count(0)
    page.get_by_role("link", name="APR", exact=True).click()
    expect(page.locator(".sd-offers tr", has_text="APR").locator("td").first).to_contain_text("lowest APR")

    page.get_by_role("link", name="Repayments", exact=True).click()
    page.get_by_role("navigation", name="Status").get_by_text("Returned after posting").click()
    page.locator(".sd-repayments [data-row] a").first.click()
    expect(page.get_by_role("heading", name="Repayment $310.00")).to_be_visible()
    expect(page.get_by_text("R01 - Insufficient funds").first).to_be_visible()
    expect(page.get_by_text("Then seen as returned after posting")).to_be_visible()
    page.goto(f"/repayments/?payment={returned.uuid}")
    expect(page.get_by_role("complementary", name="Repayment $310.00")).to_be_visible()


def test_new_items_on_the_home_page_wait_for_a_click(page: Page, returned: Account) -> None:
    page.clock.install()
    page.goto("/")
    rows, news = page.locator("[data-item]"), page.locator("#attention [data-news]")
    expect(rows).to_have_count(1)
    open_link = page.get_by_role("link", name="Open payment")
    open_link.focus()
    Account.objects.create(
        kind=Kind.LINE, uuid="line-1", borrower_uuid="b", is_past_due=True, past_due=5, past_due_rank=5
    )

    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.evaluate("Object.defineProperty(document, 'hidden', {value: true, configurable: true})")
    page.clock.run_for(61_000)
    page.evaluate("delete document.hidden")
    assert requests == []
    page.clock.run_for(61_000)
    expect(news).to_have_text("1 new, show")
    expect(rows).to_have_count(1)
    expect(open_link).to_be_focused()
    news.click()
    expect(rows).to_have_count(2)
    expect(page.get_by_text("$5.00 past due")).to_be_visible()


def test_tabs_pills_and_pages_keep_the_focus(page: Page, returned: Account, portal_service: Sandbox) -> None:
    borrower = Borrower.objects.get()
    line = given.line(portal_service, borrower, past_due_balance=Decimal("5852.92"), days_past_due=103)
    panel(browser_of(Role.VIEWER), f"{line.get_absolute_url()}?refresh=1", "line")
    given.create_records(60, kind=Kind.LINE)
    owner = borrower.get_absolute_url()
    for address, place, name in (
        ("/", "Filter the list", "Mine"),
        ("/collections/", "Aging", "90"),
        ("/collections/", "Owner", "Unassigned"),
        ("/repayments/", "Status", "Succeeded"),
        ("/lines/", "Rows per page", "50"),
        (owner, "Parts of this borrower", "Loans"),
        (owner, "Events", "Payments"),
    ):
        page.goto(address)
        link = page.get_by_label(place, exact=True).get_by_role("link", name=name)
        expect(link).not_to_have_attribute("aria-current", re.compile("."))
        link.press("Enter")
        expect(link).to_have_attribute("aria-current", re.compile("."))
        expect(link).to_be_focused()
    page.goto("/lines/")
    page.get_by_role("link", name="Next page").press("Enter")
    expect(page).to_have_url(re.compile("page=2"))
    expect(page.get_by_role("link", name="Next page")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("page=3"))
    expect(page.locator("#line-rows")).to_be_focused()  # The last page has no next one.
    loan = Account.objects.get(kind=Kind.LOAN).get_absolute_url()
    portal_service.fail_next("loans.get", status=500)
    page.goto(f"{loan}?refresh=1")
    expect(page.locator("#loan-age").get_by_role("link", name="Retry")).to_be_visible()
    page.get_by_role("link", name="Refresh", exact=True).first.press("Enter")
    expect(page.locator("#loan-age")).to_contain_text("Updated")
    expect(page.get_by_role("link", name="Refresh", exact=True).first).to_be_focused()
