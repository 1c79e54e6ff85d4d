"""Collections in a browser: a collector's day on the demo's portfolio, by keyboard and without JavaScript."""

import re
from collections import Counter
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.conf import settings as portal_settings
from django.core.cache import cache
from playwright.sync_api import Browser, Dialog, Locator, Page, expect
from pytest_django.live_server_helper import LiveServer

from portal.accounts.roles import Role
from portal.audit.models import Actor
from portal.core.business_date import CACHE_KEY, business_date
from portal.gateway import client as gateway
from portal.gateway import reading
from portal.records.models import Account, Kind
from servicing.sandbox import Sandbox
from servicing.sandbox.seed import seed
from tests import given, owed
from tests.browser.conftest import press
from tests.conftest import browser_of
from tests.reconcile import dollars, raw_accounts, shown_day

pytestmark = pytest.mark.browser
MONDAY = date(2026, 11, 16)
TUESDAY, THURSDAY = MONDAY + timedelta(days=1), MONDAY + timedelta(days=3)
NAMES = ["Hollingsworth-Vandermeer, Castellanos, Abernathy Group LLC", "Northwind Baking Co LLC"]


@pytest.fixture
def late(portal_service: Sandbox) -> list[Account]:
    """A past-due loan and a past-due line; one payment of the loan was returned, another is scheduled."""
    opened = business_date() - timedelta(days=100)
    owners = [given.borrower(portal_service, first_name=name) for name in NAMES]
    loan = given.loan(portal_service, owners[0], amount="221742.00", opened=opened, autopay_enabled=False)
    line = given.line(portal_service, owners[1], past_due_balance=Decimal("5852.92"), days_past_due=103)
    returned = portal_service.world.repayment(loan.uuid, amount="6159.50", status="SCHEDULED")
    portal_service.world.bounce_payment(returned["uuid"], "R01 - Insufficient funds")
    day = business_date() + timedelta(days=9)
    portal_service.world.repayment(loan.uuid, amount="6159.50", status="SCHEDULED", effective_date=day)
    for copy in (*reading.account_copies(loan), *reading.account_copies(line)):
        assert reading.read_live(Actor(name="Maya Chen"), copy)
    return [loan, line]


def test_a_promise_logged_beside_the_list_shows_in_its_row(page: Page, late: list[Account]) -> None:
    page.goto("/collections/?sort=past_due")
    row = page.locator("#worklist tr", has_text=late[0].uuid[:8])
    row.get_by_role("link", name="Contacts").focus()
    page.keyboard.press("Enter")
    outcome, amount = page.get_by_label("Outcome"), page.get_by_label("Promised amount")
    expect(outcome).to_be_focused()
    expect(page.locator("#contacts-title")).to_contain_text(late[0].uuid[:8])
    below, panel = row.bounding_box(), page.locator("#contacts").bounding_box()
    assert below
    assert panel
    assert abs(below["y"] + below["height"] - panel["y"]) < 4
    page.get_by_label("Person").select_option("Someone else")
    expect(amount).not_to_be_visible()
    outcome.select_option("promised")
    late[0].refresh_from_db()
    expect(amount).to_have_value(f"{late[0].past_due:,.2f}")
    amount.fill("100")
    form = page.locator("#contacts form.sd-stack")
    form.get_by_role("button", name="Tomorrow").first.click()
    expect(page.get_by_label("Promised date")).to_have_value(
        (business_date() + timedelta(days=1)).isoformat()
    )
    page.get_by_label("Promised date").press("Enter")
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


def test_closing_the_contacts_returns_to_the_row(page: Page, late: list[Account]) -> None:
    page.goto("/collections/")
    links = page.locator("#worklist").get_by_role("link", name="Contacts")
    panel, close = page.locator("#contacts"), page.get_by_role("button", name="Close, back to the list")
    links.nth(1).press("Enter")
    expect(panel.get_by_text(re.compile("Northwind.* [(]"))).to_be_visible()
    press(page, "Escape")
    expect(panel).to_be_empty()
    expect(links.nth(1)).to_be_focused()
    page.once("dialog", lambda dialog: dialog.dismiss())
    page.keyboard.press("Enter")
    panel.get_by_label("Note").fill("Pays on Friday.")
    close.click()
    expect(panel.get_by_label("Note")).to_have_value("Pays on Friday.")
    page.once("dialog", lambda dialog: dialog.accept())
    close.press("Enter")
    expect(links.nth(1)).to_be_focused()
    links.first.press("Enter")
    expect(page.locator("#contacts-title")).to_contain_text(late[0].uuid[:8])


def test_the_link_to_returned_payments_shows_its_words(page: Page, portal_service: Sandbox) -> None:
    page.goto("/collections/")
    link = page.get_by_role("link", name="Failed and returned")
    expect(link.locator("span")).to_be_visible()
    page.set_viewport_size({"width": 1024, "height": 900})
    expect(link.locator("span")).not_to_be_visible()
    expect(link).to_be_visible()


def test_x_opens_the_next_account_of_the_worklist(page: Page, late: list[Account]) -> None:
    page.goto("/collections/")
    page.keyboard.press("x")
    page.wait_for_url(f"**/{late[0].uuid}/?*")
    panel = page.locator("#contacts")
    expect(panel.locator("summary")).to_be_visible()
    page.keyboard.press("c")
    expect(panel.get_by_label("Outcome")).to_be_focused()
    panel.get_by_label("Outcome").select_option("reached")
    panel.get_by_label("Note").fill("Pays on Friday.")
    panel.get_by_label("Note").press("Tab")
    panel.get_by_role("button", name="Log contact").press("Enter")
    expect(panel).to_contain_text("Pays on Friday.")
    expect(page.locator("#contacts-title")).to_be_focused()
    panel.get_by_role("button", name="Take account").press("Enter")
    expect(panel).to_contain_text("Owner: Servicer")
    page.keyboard.press("x")
    page.wait_for_url(f"**/{late[1].uuid}/?*")


def test_typed_text_is_discarded_only_after_confirmation(page: Page, late: list[Account]) -> None:
    messages: list[str] = []
    answers = iter([False, False, True])

    def answer(dialog: Dialog) -> None:
        messages.append(dialog.message)
        dialog.accept() if next(answers) else dialog.dismiss()

    page.on("dialog", answer)
    page.goto("/collections/")
    links = page.locator("#worklist").get_by_role("link", name="Contacts")
    links.first.click()
    title, note = page.locator("#contacts-title"), page.locator("#contacts").get_by_label("Note")
    expect(title).to_contain_text(late[0].uuid[:8])
    note.fill("Pays on Friday.")
    page.get_by_role("button", name="Take account").click()
    expect(page.locator("#contacts")).to_contain_text("Owner: Servicer")
    expect(title).to_be_focused()
    expect(page.locator("#worklist")).to_contain_text("Servicer")
    expect(note).to_have_value("Pays on Friday.")
    assert messages == []
    page.get_by_role("link", name="Unassigned").click()
    links.nth(1).click()
    expect(title).to_contain_text(late[0].uuid[:8])
    expect(note).to_have_value("Pays on Friday.")
    assert messages == ["Discard what you typed?"] * 2
    links.nth(1).click()
    expect(title).to_contain_text(late[1].uuid[:8])
    expect(note).to_have_value("")
    links.first.click()
    expect(title).to_contain_text(late[0].uuid[:8])
    assert len(messages) == 3


# --- A collector's day on the demo's portfolio ---


@pytest.fixture
def portfolio(db: None, tmp_path: Path, settings: LazySettings) -> Iterator[Sandbox]:
    """The demo's portfolio on a Monday, with every account read once and the service's business date."""
    with Sandbox(tmp_path / "s.sqlite3", auth="none", control=True, today=MONDAY) as service:
        seed(service.world)
        settings.SERVICING_URL, settings.SERVICING_AUTH = service.url, "none"
        settings.BUSINESS_DATE_FROM = "sandbox"
        gateway.client.cache_clear()
        cache.clear()
        owners = {user["uuid"]: given.save_answer(user) for user in service.world.users()}
        for kind in (Kind.LOAN, Kind.LINE):
            for one in service.world.store.all(kind):
                read_account(given.account(kind, owners[one.owner], one.uuid))
        yield service
    gateway.client.cache_clear()
    cache.clear()


def read_account(account: Account) -> None:
    for copy in reading.account_copies(account):
        assert reading.read_live(Actor(name="Maya Chen"), copy)


def past_due_accounts(service: Sandbox) -> list[dict[str, Any]]:
    """The past-due accounts of the service's raw answers, worst first, with recalculated figures."""
    today = service.world.clock.today()
    found = [
        account | {"figures": owed.figures(account["kind"], account["answer"], today)}
        for account in raw_accounts(service)
    ]
    late = [account for account in found if account["figures"]["is_late"]]
    for account in late:
        account["payments"] = [
            each.body for each in service.world.store.all("repayment", owner=account["uuid"])
        ]
    return sorted(late, key=worst_first)


def worst_first(account: dict[str, Any]) -> tuple[bool, Decimal]:
    amount = account["figures"]["Past due"]
    return amount is None, -(amount or Decimal(0))


def expected_words(account: dict[str, Any], today: date) -> list[str]:
    """What an account's row must show: its figures, its next scheduled payment and its last succeeded one."""
    figures = account["figures"]
    days = figures["Days past due"]
    words = [dollars(figures["Past due"]), "Not known" if days is None else f"{days:,}"]
    if figures["Due next"]:
        words += [shown_day(figures["Due next"]), dollars(figures["Amount due next"])]
    dated = [(date.fromisoformat(each["effective_date"]), each) for each in account["payments"]]
    coming = [pair for pair in dated if pair[1]["status"] == "SCHEDULED" and pair[0] >= today]
    paid = [pair for pair in dated if pair[1]["status"] == "SUCCEEDED"]
    for pairs, choose in ((coming, min), (paid, max)):
        if pairs:
            day = choose(pair[0] for pair in pairs)
            words.append(shown_day(day))
            of_day = {dollars(Decimal(str(pair[1]["amount"]))) for pair in pairs if pair[0] == day}
            words += of_day if len(of_day) == 1 else []
    return words


def visible_text(part: Locator) -> str:
    return " ".join(part.inner_text().split())


def check_worklist(page: Page, service: Sandbox) -> list[dict[str, Any]]:
    """Compare every row and tab with the service's raw answers, and return the past-due accounts."""
    late, today = past_due_accounts(service), service.world.clock.today()
    page.goto("/collections/?size=100")
    expect(page.get_by_text(f"Demo date {shown_day(today)}")).to_be_attached()
    rows = page.locator("#worklist [data-row]")
    expect(rows).to_have_count(len(late))
    shown = [one.get_by_role("checkbox").get_attribute("value") for one in rows.all()]
    amounts = {one["uuid"]: one["figures"]["Past due"] for one in late}
    assert [amounts[uuid or ""] for uuid in shown] == [one["figures"]["Past due"] for one in late]
    for one in late:
        words = visible_text(rows.nth(shown.index(one["uuid"])))
        for expected in expected_words(one, today):
            assert expected in words, (one["uuid"], expected, words)
    tabs = visible_text(page.get_by_role("navigation", name="Aging"))
    for name in ("All", *owed.BUCKETS, "Not known"):
        of_bucket = [one["figures"]["Past due"] for one in late if name in ("All", one["figures"]["Aging"])]
        unknown, known = of_bucket.count(None), sum((one for one in of_bucket if one is not None), Decimal(0))
        sums = dollars(known) if known or not unknown else "Not known"
        if of_bucket:
            more = f", plus {unknown} without a figure" if unknown and known else ""
            said = "" if name == sums else f" {sums}{more}"
            assert f"{name} {len(of_bucket)}{said}" in tabs
    return late


def log_contact(page: Page, outcome: str, amount: str = "", day: date | None = None) -> None:
    """Log a contact in the page's panel; an amount and a day make it a promise."""
    panel = page.locator("#contacts")
    panel.locator("summary").click()
    panel.get_by_label("Person").select_option("Someone else")
    panel.get_by_label("Outcome").select_option(outcome)
    if day:
        panel.get_by_label("Promised amount").fill(amount)
        panel.get_by_label("Promised date").fill(day.isoformat())
    panel.get_by_label("Note").fill(f"Said: {outcome}.")
    panel.get_by_role("button", name="Log contact").click()
    expect(panel).to_contain_text(f"Said: {outcome}.")


def open_signed_in_page(chromium: Browser, live_server: LiveServer, role: Role, **options: Any) -> Page:
    """Open a separate page, signed in with this role."""
    context = chromium.new_context(base_url=live_server.url, reduced_motion="reduce", **options)
    session = browser_of(role).cookies[portal_settings.SESSION_COOKIE_NAME].value
    cookie = {"name": portal_settings.SESSION_COOKIE_NAME, "value": session, "url": live_server.url}
    context.add_cookies([cookie])  # type: ignore[list-item]  # Playwright doesn't export its cookie type.
    return context.new_page()


def choose_payers(service: Sandbox, walked: list[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Choose an account whose payment on Tuesday will succeed, and one without any payment by Thursday."""
    known = [one for one in walked if one["figures"]["Past due"]]
    numbers = {one["uuid"]: service.world.account(one["uuid"]).private["payments"] + 1 for one in known}
    payer = next(one for one in known if numbers[one["uuid"]] % 17 and numbers[one["uuid"]] % 23)
    quiet = [one for one in known if not any(each["status"] == "SCHEDULED" for each in one["payments"])]
    return payer, next(one for one in quiet if one is not payer)


def test_a_collectors_day(page: Page, portfolio: Sandbox, chromium: Browser, live_server: LiveServer) -> None:
    late = check_worklist(page, portfolio)
    payer, nonpayer = choose_payers(portfolio, late[:10])
    messaged = next(one for one in late[:10] if one not in (payer, nonpayer))
    payment = portfolio.world.repayment(
        payer["uuid"], amount="150.00", status="SCHEDULED", effective_date=TUESDAY
    )
    uuids = [
        one.get_by_role("checkbox").get_attribute("value")
        for one in page.locator("#worklist [data-row]").all()
    ]
    amounts = {one["uuid"]: one["figures"]["Past due"] for one in late}
    for uuid in uuids[:10]:
        page.keyboard.press("x")
        page.wait_for_url(f"**/{uuid}/?*")
        expect(page.locator("main")).to_contain_text(dollars(amounts[uuid or ""]))
        expect(page.locator("#contacts")).to_contain_text("No contacts")
        if uuid in (payer["uuid"], nonpayer["uuid"]):
            log_contact(page, "promised", "150.00", TUESDAY)
            expect(page.locator("#contacts")).to_contain_text(f"$150.00 by {shown_day(TUESDAY)}")
            page.locator("h1").click()  # Leave the form, where x would be typed as a letter.
        elif uuid == messaged["uuid"]:
            log_contact(page, "left_message")
            page.locator("h1").click()

    portfolio.world.advance(3)
    cache.delete(CACHE_KEY)
    page.goto("/collections/?promise=open")
    expect(page.get_by_text(f"Demo date {shown_day(THURSDAY)}")).to_be_attached()
    for promised in (payer, nonpayer):
        expect(page.locator("[data-row]", has_text=promised["uuid"][:8])).to_contain_text(
            re.compile("Awaiting update|Payment pending")
        )
    page.get_by_role("link", name="Select all 2").click()
    expect(page.get_by_role("checkbox", name="Select account", checked=True)).to_have_count(2)
    page.get_by_role("button", name="Refresh selected").click()
    expect(page.get_by_role("heading", name="2 of 2 refreshed")).to_be_visible()

    settled = portfolio.world.store.require("repayment", payment["uuid"]).body
    assert (settled["status"], settled["amount"]) == ("SUCCEEDED", Decimal("150.00"))
    page.goto("/collections/?promise=kept")
    expect(page.locator("[data-row]")).to_have_count(1)
    page.get_by_role("link", name="Contacts", exact=False).and_(
        page.locator("[hx-target='#contacts']")
    ).click()
    panel = page.locator("#contacts")
    expect(panel).to_contain_text("paid $150.00 of $150.00")
    panel.get_by_role("link", name="$150.00 paid").click()
    page.wait_for_url(f"**/repayments/{payment['uuid']}/")
    page.goto("/collections/?promise=new")
    expect(page.locator("[data-row]")).to_have_count(1)
    expect(page.locator("[data-row]")).to_contain_text(nonpayer["uuid"][:8])
    expect(page.locator("[data-row]").get_by_text("Promise broken")).to_be_hidden()
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.locator("[data-row]").get_by_text("Promise broken")).to_be_visible()
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto("/")
    expect(page.locator("main")).to_contain_text("paid $0.00 of $150.00")

    for account in Account.objects.filter(kind__in=(Kind.LOAN, Kind.LINE)):
        read_account(account)
    late = check_worklist(page, portfolio)
    check_returns(page, portfolio)
    assign_accounts(
        open_signed_in_page(chromium, live_server, Role.SUPERVISOR), [one["uuid"] for one in late[:5]]
    )
    page.goto("/collections/")
    page.get_by_role("link", name="Mine").click()
    expect(page.locator("[data-row]")).to_have_count(5)
    page.get_by_role("link", name="Print", exact=True).click()
    page.wait_for_url("**/collections/print/?owner=*")
    printed = visible_text(page.get_by_role("table"))
    for one in late[:5]:
        amount = one["figures"]["Past due"]
        assert one["uuid"][:8] in printed
        assert dollars(amount) in printed


def check_returns(page: Page, service: Sandbox) -> None:
    """Compare the returned payments of the last 90 days with the service's raw answers, by code."""
    first = service.world.clock.today() - timedelta(days=90)
    raw = [one.body for one in service.world.store.all("repayment")]
    failed = [
        one
        for one in raw
        if one["status"].startswith("FAILED") and one["effective_date"] >= first.isoformat()
    ]
    numbers = Counter((one["error_description"] or "No code")[:3] for one in failed)
    page.goto("/collections/")
    page.get_by_role("link", name="Failed and returned").click()
    expect(
        page.get_by_role("heading", name="By code").or_(page.get_by_text("No returned payments"))
    ).to_be_visible()
    page.get_by_role("link", name="90 days").click()
    page.wait_for_url("**/returns/?days=90")
    assert numbers
    for code, number in numbers.items():
        of_code = [one for one in failed if (one["error_description"] or "No code").startswith(code)]
        amount = sum((Decimal(str(one["amount"])) for one in of_code), Decimal(0))
        row = page.get_by_role("table").first.get_by_role("row").filter(has_text=code)
        expect(row).to_contain_text(re.compile(rf"\b{number}\b"))
        expect(row).to_contain_text(dollars(amount))
    expect(page.locator("[data-row]")).to_have_count(sum(numbers.values()))


def assign_accounts(page: Page, uuids: list[str]) -> None:
    """Assign accounts to the servicer, as a supervisor."""
    page.goto("/collections/?size=100")
    for uuid in uuids:
        page.locator(f"[name=uuid][value='{uuid}']").check()
    page.get_by_label("Assign selected to").select_option(label="Servicer")
    page.get_by_role("button", name="Assign selected").click()
    expect(page.get_by_text("5 accounts assigned to Servicer.")).to_be_visible()
    page.context.close()


def test_collections_work_without_javascript(
    chromium: Browser, live_server: LiveServer, late: list[Account]
) -> None:
    page = open_signed_in_page(chromium, live_server, Role.SUPERVISOR, java_script_enabled=False)
    page.goto("/collections/")
    page.get_by_role("button", name="Filters").click()
    page.get_by_label("Type").select_option("loan")
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("[data-row]")).to_have_count(1)
    page.get_by_role("link", name="Start calling").click()
    page.get_by_role("region", name="Contacts and promises").get_by_role("link", name="Open").click()
    page.locator("summary", has_text="Log contact").click()
    page.get_by_label("Person").select_option("Someone else")
    page.get_by_label("Outcome").select_option("promised")
    page.get_by_label("Promised date").fill((business_date() + timedelta(days=1)).isoformat())
    page.get_by_label("Promised amount").fill("")
    page.get_by_role("button", name="Log contact").click()
    expect(page.get_by_text("Enter the promised amount.").first).to_be_visible()
    page.get_by_label("Promised amount").fill("9,999,999.00")
    page.get_by_role("button", name="Log contact").click()
    page.get_by_label("Yes, log it").check()
    page.get_by_role("button", name="Log contact").click()
    expect(page.get_by_text("Promise logged.")).to_be_visible()
    page.get_by_role("button", name="Take account").click()
    expect(page.get_by_text("Owner: Supervisor")).to_be_visible()
    page.get_by_role("link", name="Withdraw this promise").click()
    page.get_by_label("Reason").fill("Typed too many digits")
    page.get_by_role("button", name="Withdraw promise").click()
    expect(page.get_by_text("Typed too many digits")).to_be_visible()

    page.goto("/collections/")
    for box in page.get_by_role("checkbox", name="Select account").all():
        box.check()
    page.get_by_label("Assign selected to").select_option("nobody")
    page.get_by_role("button", name="Assign selected").click()
    expect(page.get_by_role("link", name="Unassigned")).to_be_visible()
    page.get_by_role("link", name="Unassigned").click()
    expect(page.locator("[data-row]")).to_have_count(2)
    page.get_by_role("link", name="Failed and returned").click()
    page.get_by_role("link", name="R01").click()
    expect(page.get_by_role("heading", name="R01")).to_be_visible()
    page.goto("/collections/")
    page.get_by_role("link", name="Print", exact=True).click()
    expect(page.get_by_role("table", name="Accounts of the worklist")).to_contain_text(late[0].uuid[:8])
    page.context.close()
