"""The worklist in a real browser: contacts logged beside it by keyboard, its width, and axe."""

import re
from datetime import timedelta
from decimal import Decimal

import pytest
from playwright.sync_api import Page, expect

from portal import live
from portal.audit.models import Actor
from portal.registry.models import Record
from portal.runtime.business_date import business_date
from servicing.sandbox import Sandbox
from tests import given
from tests.browser.axe import complaints

pytestmark = pytest.mark.browser
NAMES = ["Hollingsworth-Vandermeer, Castellanos, Abernathy Group LLC", "Northwind Baking Co LLC"]


@pytest.fixture
def late(portal_service: Sandbox) -> list[Record]:
    """A loan and a line that are past due; a payment of the loan came back, another is scheduled."""
    opened = business_date() - timedelta(days=100)
    owners = [given.borrower(portal_service, first_name=name) for name in NAMES]
    loan = given.loan(portal_service, owners[0], amount="221742.00", opened=opened, autopay_enabled=False)
    line = given.line(portal_service, owners[1], past_due_balance=Decimal("5852.92"), days_past_due=103)
    returned = portal_service.world.repayment(loan.uuid, amount="6159.50", status="SCHEDULED")
    portal_service.world.bounce_payment(returned["uuid"], "R01 - Insufficient funds")
    day = business_date() + timedelta(days=9)
    portal_service.world.repayment(loan.uuid, amount="6159.50", status="SCHEDULED", effective_date=day)
    for record in (*live.account_records(loan), *live.account_records(line)):
        assert live.read_live(Actor(name="Maya Chen"), record)
    return [loan, line]


def test_a_promise_is_logged_beside_the_list_and_shows_in_its_row(page: Page, late: list[Record]) -> None:
    page.goto("/collections/?sort=past_due")
    row = page.locator("#worklist tr", has_text=late[0].uuid[:8])
    row.get_by_role("link", name="Contacts").focus()
    page.keyboard.press("Enter")
    title = page.locator("#contacts-title")
    expect(title).to_be_focused()
    expect(title).to_contain_text(late[0].uuid[:8])
    page.get_by_label("Person").select_option("Someone else")
    page.get_by_label("Outcome").select_option("promised")
    page.get_by_label("Promised amount").fill("100")
    page.get_by_label("Promised for").fill((business_date() + timedelta(days=1)).isoformat())
    page.get_by_label("Promised for").press("Enter")
    expect(row).to_contain_text("$100.00")
    expect(row).to_contain_text("Promised to pay")
    expect(page.locator("#contacts .sd-rows")).to_contain_text("$100.00")
    expect(page).to_have_url(re.compile(r"/collections/\?sort=past_due$"))
    for width in (1440, 1024):
        page.set_viewport_size({"width": width, "height": 900})
        inner, outer = page.locator("#worklist .sd-table-region").evaluate(
            "e => [e.scrollWidth, e.clientWidth]"
        )
        assert (width, inner) == (width, outer)


def test_axe_finds_nothing(page: Page, late: list[Record]) -> None:
    for address in (
        "/collections/?choose=1",
        f"/collections/contacts/loan/{late[0].uuid}/",
        "/collections/returns/",
        "/collections/print/",
    ):
        page.goto(address)
        page.wait_for_load_state("networkidle")
        assert (address, complaints(page)) == (address, [])
