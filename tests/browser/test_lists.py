"""Lists in a browser: rows per screen, and no sideways scrolling with the longest data."""

from datetime import timedelta
from decimal import Decimal

import pytest
from playwright.sync_api import Page, expect

from portal.audit.models import Actor
from portal.core.business_date import business_date
from portal.gateway import reading
from portal.records import store
from portal.records.models import Account, Borrower, Kind, Source
from servicing import Application, codec
from servicing.sandbox import Sandbox
from servicing.sandbox.wire import dumps
from tests import given

pytestmark = pytest.mark.browser
LISTS = ["borrowers", "loans", "lines", "applications", "repayments", "collections"]
NAMES = [
    "Hollingsworth-Vandermeer, Castellanos, Abernathy and Thibodeaux Consulting Engineers of North Carolina LLP",
    "Donaudampfschifffahrtselektrizitaetenhauptbetriebswerkbauunterbeamtengesellschaft",
    "Bob's",
]
LONG_WORD = "REFERRED_TO_EXTERNAL_COUNSEL_UNDER_REVIEW"
AMOUNT = "987654321.09"


def create_application(service: Sandbox, owner: Borrower, **overrides: object) -> None:
    answer = service.world.loan_application(owner.uuid, amount="98765.43", **overrides)
    store.save(
        store.observe(codec.decode(Application, dumps(answer)), borrower_uuid=owner.uuid),
        source=Source.SERVICE,
    )


def read_accounts(*accounts: Account) -> None:
    for account in accounts:
        for copy in reading.account_copies(account):
            assert reading.read_live(Actor(name="Maya Chen"), copy)


@pytest.fixture
def longest_data(page: Page, portal_service: Sandbox) -> None:
    """Accounts with the longest names, words and amounts: past due, not known, with scheduled payments."""
    world, today = portal_service.world, business_date()
    for name in NAMES:
        owner = given.borrower(portal_service, first_name=name)
        terms = {"amount": AMOUNT, "opened": today - timedelta(days=200)}
        late = given.loan(portal_service, owner, status=LONG_WORD, product=LONG_WORD, **terms)
        unknown = given.loan(portal_service, owner, autopay_enabled=False, **terms)
        rows = world.store.require("loan", unknown.uuid).body["installments"]
        world.amend(unknown.uuid, installments=[row | {"due_date": None} for row in rows], delinquent=True)
        balances = dict.fromkeys(
            ("principal_balance", "past_due_balance", "available_credit"), Decimal(AMOUNT)
        )
        line = given.line(portal_service, owner, limit=AMOUNT, **balances, days_past_due=1234)
        world.amend(
            line.uuid, payment_amount_due=Decimal(AMOUNT), payment_due_date=f"{today + timedelta(days=3)}"
        )
        for account in (late, unknown, line):
            for days, status in ((-3, "SUCCEEDED"), (3, "SCHEDULED"), (-1, "FAILED"), (-2, LONG_WORD)):
                day = today + timedelta(days=days)
                reason = "R29 - Corporate customer advises that it is not authorized " * 3
                world.repayment(
                    account.uuid,
                    amount=AMOUNT,
                    status=status,
                    effective_date=day,
                    error_description=reason if status == "FAILED" else None,
                )
        create_application(portal_service, owner, product=LONG_WORD, status={"decision": LONG_WORD})
        read_accounts(late, unknown, line)


@pytest.mark.parametrize("width", [1440, 1366, 1280, 1024, 768, 390])
def test_long_data_does_not_scroll_a_list_sideways(page: Page, longest_data: None, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    for name in (*LISTS, *(["collections/returns"] if width >= 1024 else [])):
        page.goto(f"/{name}/")
        expect(page.locator(".sd-list [data-row]").first).to_be_visible()
        inner, outer = page.locator(".sd-list .sd-table-region").evaluate(
            "region => [region.scrollWidth, region.clientWidth]"
        )
        assert (name, inner <= outer + 1) == (name, True)  # Fractions of a pixel are rounded up.
        for link in page.locator(".sd-accounts:not(.sd-worklist) th[scope=row] > a").all():
            assert width == 390 or link.evaluate("link => link.offsetHeight") >= 24
        assert page.evaluate("document.documentElement.scrollWidth") == width
        if width == 390:
            expect(page.get_by_text("1,234 days", exact=True)).to_have_count(
                3 * (name in ("lines", "collections"))
            )
        if width < 1024 or name == "collections/returns":
            continue
        if name not in (
            "repayments",
            "collections",
        ):  # Their rows also show why a payment failed or what was promised.
            heights = page.locator(".sd-list [data-row]").evaluate_all(
                "all => all.map(row => row.offsetHeight)"
            )
            assert (name, max(heights) <= 44) == (name, True)
        gap = page.evaluate(
            """() => {
                const left = selector => document.querySelector(selector).getBoundingClientRect();
                return left(".sd-list-tools").left - left(".sd-list-head .sd-filters > button").right;
            }"""
        )
        assert (name, gap >= 8) == (name, True)


def test_the_first_screen_of_a_list_shows_enough_rows(page: Page, portal_service: Sandbox) -> None:
    opened = business_date() - timedelta(days=70)
    for number in range(20):
        owner = given.borrower(portal_service, first_name=f"Harbor Bakery {number:02} LLC")
        loan = given.loan(portal_service, owner, opened=opened)
        portal_service.world.repayment(loan.uuid, amount="250.10", effective_date=opened.replace(day=5))
        read_accounts(loan, given.line(portal_service, owner))
        create_application(portal_service, owner)
    assert Account.objects.filter(kind=Kind.LOAN, is_past_due=True).count() == 20
    # Collections have two rows of tabs above the list, and repayments a month.
    minimums = dict.fromkeys(("borrowers", "loans", "lines", "applications", "repayments"), 18) | {
        "collections": 16
    }
    for name, number in minimums.items():
        page.goto(f"/{name}/")
        rows = page.locator(".sd-list [data-row]")
        expect(rows).to_have_count(20)
        boxes = rows.evaluate_all(
            "rows => rows.map(row => row.getBoundingClientRect()).map(box => [box.height, box.bottom])"
        )
        min_height = 37 if name in ("repayments", "collections") else 40
        assert (name, sum(bottom <= 900 for _, bottom in boxes) >= number) == (name, True)
        assert (name, all(min_height <= height <= 44 for height, _ in boxes)) == (name, True)
        cut = page.locator("th[scope=row] > small").evaluate_all(
            "lines => lines.filter(line => line.scrollWidth > line.clientWidth).length"
        )
        assert (name, cut) == (name, 0)
