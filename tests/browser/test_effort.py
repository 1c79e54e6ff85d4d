"""The ten common jobs, each the shortest way that the screens offer, and what it costs staff.

A click or a key is one, a field's value is one however long it is, and a load is a page or a request of HTMX. After a
change that makes a job shorter, lower its numbers. None may grow.
"""

import re
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import NamedTuple

import pytest
from django.conf import LazySettings
from django.urls import reverse
from playwright.sync_api import Locator, Page, Request, expect

from portal.audit.models import Actor
from portal.collections.models import Promise
from portal.core.business_date import business_date
from portal.credit_lines import documents
from portal.gateway import reading
from portal.notes.models import Note
from portal.records.models import Borrower
from servicing.sandbox import Sandbox
from tests import given
from tests.browser.conftest import press, with_pdf_viewer

pytestmark = pytest.mark.browser
NAME = "Northwind Baking Co LLC"


class Cost(NamedTuple):
    """What a job costs."""

    actions: int
    inputs: int
    loads: int


class Effort:
    """Somebody at a page, whose actions are counted."""

    def __init__(self, page: Page, borrower: Borrower) -> None:
        self.page, self.borrower = page, borrower
        self.actions = self.inputs = self.loads = 0
        page.on("request", self._count)

    def _count(self, request: Request) -> None:
        """Count a page or a fragment; what a redirect leads to belongs to the request before it."""
        if request.redirected_from or request.url.endswith(reverse("home:waiting")):
            return  # Nobody waits for the numbers in the navigation.
        is_page = request.is_navigation_request() and request.frame == self.page.main_frame
        self.loads += is_page or "hx-request" in request.headers

    def begin(self, address: str) -> None:
        """Be at this page, and count from here."""
        self.page.goto(address)
        self.page.wait_for_load_state("networkidle")
        self.actions = self.inputs = self.loads = 0

    def click(self, target: Locator) -> None:
        target.click()
        self.actions += 1

    def press(self, *keys: str) -> None:
        press(self.page, *keys)
        self.actions += len(keys)

    def fill(self, name: str, value: str) -> None:
        """Give the field of this name a value: typed, chosen or ticked."""
        field = self.page.locator(f"[name='{name}']:visible")
        if field.count() > 1:
            self.page.locator(f"[name='{name}'][value='{value}']").check()
        elif field.evaluate("field => field.tagName") == "SELECT":
            field.select_option(value)
        else:
            field.fill(value)
        self.inputs += 1

    def button(self, name: str) -> None:
        self.click(self.page.get_by_role("button", name=name))

    @property
    def cost(self) -> Cost:
        self.page.wait_for_load_state("networkidle")
        return Cost(self.actions, self.inputs, self.loads)


@pytest.fixture
def effort(page: Page, portal_service: Sandbox, settings: LazySettings) -> Effort:
    """A servicer, and a borrower with a past-due loan, a line with statements and a failed payment, all up to date."""
    settings.DEBUG = True  # This machine serves the statements.
    documents._fetcher.cache_clear()
    borrower = given.borrower(portal_service, first_name=NAME)
    opened = business_date() - timedelta(days=100)
    loan = given.loan(portal_service, borrower, amount="12000.00", opened=opened, autopay_enabled=False)
    line = given.line(portal_service, borrower, opened=opened, payoff_balance=Decimal("4321.09"))
    for month in (1, 2):
        portal_service.world.statement(line.uuid, str(opened + timedelta(days=30 * month)))
    portal_service.world.repayment(
        loan.uuid, amount="250.10", status="FAILED", error_description="R01 - Insufficient funds"
    )
    copies = [*reading.account_copies(loan), *reading.account_copies(line)]
    reading.read_and_wait(Actor(name="Maya Chen"), copies, force=True)
    return Effort(page, borrower)


def find_a_borrower(effort: Effort) -> None:
    effort.begin("/")
    effort.press("/")
    effort.fill("q", "northwind")
    found = effort.page.locator("#suggestions[data-query='northwind']").get_by_role("option", name=NAME)
    expect(found).to_be_visible()
    effort.press("Enter")
    expect(effort.page.get_by_role("heading", name=NAME)).to_be_visible()


def read_the_payoff_of_a_line(effort: Effort) -> None:
    effort.begin(effort.borrower.get_absolute_url())
    card = effort.page.get_by_role("region", name="Payoff", exact=True)
    expect(card.locator(".sd-figure-2")).to_have_text("$4,321.09")


def add_a_note(effort: Effort) -> None:
    effort.begin(effort.borrower.get_absolute_url())
    effort.press("n")
    effort.fill("text", "Pays on Friday.")
    effort.press("Control+Enter")
    expect(effort.page.get_by_role("dialog")).to_have_count(0)
    assert Note.objects.get().text == "Pays on Friday."


def change_a_phone(effort: Effort) -> None:
    effort.begin(effort.borrower.get_absolute_url())
    effort.click(effort.page.get_by_role("link", name="Change phone"))
    effort.fill("phone", "5125550177")
    effort.press("Enter")
    effort.button("Send change")
    expect(effort.page.locator(".sd-toast")).to_contain_text("Phone")
    expect(effort.page.get_by_role("heading", name=NAME)).to_be_visible()
    effort.borrower.refresh_from_db()
    assert effort.borrower.phone == "5125550177"


def submit_an_application(effort: Effort) -> None:
    effort.begin(effort.borrower.get_absolute_url())
    effort.press("a")
    effort.fill("amount", "25,000")
    expect(effort.page.locator("#amount-words")).to_have_text("Twenty-five thousand dollars")
    effort.press("Enter")
    effort.button("Send application for $25,000.00")
    expect(effort.page.get_by_role("heading", name="Loan application")).to_be_visible()


def onboard_a_borrower(effort: Effort) -> None:
    effort.begin("/borrowers/")
    effort.click(effort.page.get_by_role("link", name="New borrower"))
    steps: list[tuple[str, dict[str, str]]] = [
        (
            "address",
            {
                "first_name": "Keys & Sons LLC",
                "entity": "LIMITED_LIABILITY_COMPANY",
                "email": "office@keys.example",
                "phone": "5125550161",
            },
        ),
        ("people", {"line_1": "1 Main St", "city": "Austin", "state": "TX", "zip": "78702"}),
        (
            "reports",
            {
                "person-0-first_name": "Ana",
                "person-0-last_name": "Silva",
                "person-0-title": "OWNER",
                "person-0-email": "ana@keys.example",
                "person-0-phone": "5125550162",
            },
        ),
        ("review", {}),
    ]
    for next_step, values in steps:
        for name, value in values.items():
            effort.fill(name, value)
        # “Same address as the business” is ticked, so no address is asked for again.
        expect(effort.page.locator("[name^=person-0-line]:visible")).to_have_count(0)
        effort.button("Save and continue")
        effort.page.wait_for_url(f"**/{next_step}/")
    for name in ("ein", "ein_again"):
        effort.fill(name, "471029384")
    effort.page.check("[name=checked]")
    effort.inputs += 1
    effort.button("Create Keys")
    expect(effort.page.get_by_role("heading", name="Keys & Sons LLC")).to_be_visible()


def open_the_newest_statement(effort: Effort) -> None:
    effort.begin(effort.borrower.get_absolute_url())
    effort.click(
        effort.page.get_by_role("region", name="Payoff", exact=True).get_by_role("link", name="Line")
    )
    expect(effort.page.get_by_title(re.compile("^Statement of "))).to_be_visible()


def print_a_summary(effort: Effort) -> None:
    effort.begin(effort.borrower.get_absolute_url())
    effort.press("p")
    effort.click(effort.page.get_by_role("link", name="Open PDF"))
    effort.page.wait_for_url("**/summary.pdf*")


def find_the_failed_payments(effort: Effort) -> None:
    effort.begin("/")
    effort.click(effort.page.get_by_role("link", name="Repayments", exact=True))
    effort.click(
        effort.page.get_by_role("navigation", name="Status").get_by_role("link", name=re.compile("^Failed"))
    )
    expect(effort.page.locator(".sd-repayments [data-row]")).to_have_count(1)


def log_a_promise(effort: Effort) -> None:
    effort.begin("/")
    effort.click(effort.page.get_by_role("link", name=re.compile("^Collections")))
    effort.click(effort.page.locator("#worklist").get_by_role("link", name="Contacts").first)
    effort.fill("outcome", "promised")
    effort.click(effort.page.locator(".sd-promise-fields").get_by_role("button", name="Tomorrow"))
    effort.press("Enter")
    expect(effort.page.locator("#worklist")).to_contain_text("Promised to pay")
    assert Promise.objects.get().amount > 0


JOBS: dict[Callable[[Effort], None], Cost] = {
    find_a_borrower: Cost(2, 1, 2),
    read_the_payoff_of_a_line: Cost(0, 0, 0),  # In 1.0 the line had to be opened: 1, 0, 2.
    add_a_note: Cost(2, 1, 3),
    change_a_phone: Cost(3, 1, 3),
    submit_an_application: Cost(3, 1, 5),
    onboard_a_borrower: Cost(6, 16, 22),  # Twelve loads check a field that was left.
    open_the_newest_statement: Cost(1, 0, 2),
    print_a_summary: Cost(2, 0, 2),
    find_the_failed_payments: Cost(2, 0, 2),
    log_a_promise: Cost(4, 1, 5),  # In 1.0 the amount had to be typed: 4, 2, 5.
}
"""The most that a job may cost. Those without a comment cost the same in release 1.0."""


@with_pdf_viewer
@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.__name__)
def test_no_job_costs_more_than_it_did(effort: Effort, job: Callable[[Effort], None]) -> None:
    job(effort)
    over = [
        (name, now, most)
        for name, now, most in zip(Cost._fields, effort.cost, JOBS[job], strict=True)
        if now > most
    ]
    assert over == []
