"""Loans and lines of credit in a browser: by keyboard, without a PDF viewer, and checked by axe."""

import re
from datetime import date

import pytest
from django.conf import LazySettings
from playwright.sync_api import Locator, Page, expect

from portal.accounts.roles import Role
from portal.audit.models import Entry
from portal.credit_lines import documents
from portal.records.models import Account, Answer, Borrower
from servicing.sandbox import Sandbox
from tests import given
from tests.browser.conftest import press, with_pdf_viewer
from tests.conftest import browser_of
from tests.portal.pages import panel

pytestmark = pytest.mark.browser
MAX_TABS = 80
DAYS = ("2026-02-15", "2026-03-15", "2026-04-15", "2026-05-15")


@pytest.fixture
def borrower(portal_service: Sandbox, settings: LazySettings) -> Borrower:
    """A borrower whose statements are served by this machine."""
    settings.DEBUG = True
    documents._fetcher.cache_clear()
    return given.borrower(portal_service, first_name="Northwind Baking Co LLC")


@pytest.fixture
def loan(portal_service: Sandbox, borrower: Borrower) -> Account:
    record = given.loan(portal_service, borrower, installments=360, paid=40)
    portal_service.world.repayment(record.uuid, amount="671.11", effective_date="2026-10-02")
    return record


@pytest.fixture
def line(portal_service: Sandbox, borrower: Borrower) -> Account:
    record = given.line(portal_service, borrower, opened=date(2026, 1, 1), limit="20000", drawn="7600")
    for day in DAYS:
        portal_service.world.statement(record.uuid, day)
    return record


def tab_on_to(page: Page, wanted: Locator) -> None:
    """Press Tab, at least once, until the element has the focus."""
    page.wait_for_load_state()
    for _ in range(MAX_TABS):
        page.keyboard.press("Tab")
        if wanted.evaluate("each => each === document.activeElement"):
            return
    raise AssertionError(f"{wanted} cannot be reached by Tab")


@with_pdf_viewer
def test_schedules_and_statements_work_by_keyboard_alone(page: Page, loan: Account, line: Account) -> None:
    page.goto("/")
    press(page, "g", "l")
    expect(page.get_by_role("heading", name="Loans", level=1)).to_be_visible()
    press(page, "j", "o")
    rows = page.locator(".sd-schedule tbody th[scope=row]:not([colspan])")
    expect(rows).to_have_count(12)
    expect(page.get_by_text("$671.11").first).to_be_visible()
    tab_on_to(page, page.get_by_role("link", name="later installments"))
    page.keyboard.press("Enter")
    expect(rows).to_have_count(360)
    tab_on_to(page, page.get_by_label("Hide yearly subtotals"))
    page.keyboard.press("Space")
    expect(page.locator(".sd-schedule tbody .sd-sum")).to_have_count(0)
    expect(rows).to_have_count(360)

    press(page, "g", "c")
    expect(page.get_by_role("heading", name="Lines of credit", level=1)).to_be_visible()
    press(page, "j", "o")
    expect(page.get_by_text("4 statements")).to_be_visible()
    meter = page.get_by_role("meter", name="Principal of the limit")
    expect(meter).to_have_attribute("aria-valuetext", "38%")
    page.evaluate("window.stayed = true")
    # The newest statement opens beside the list without a key press.
    for key, words in (("", "May 15"), ("[", "Apr 15"), ("[", "Mar 15"), ("]", "Apr 15")):
        press(page, *key)
        expect(page.locator(".sd-viewer h3")).to_have_text(f"Statement of {words}, 2026")
        expect(page.frame_locator(".sd-paper").locator("embed, body")).to_have_count(1)
    assert page.url.endswith("?statement=2026-04-15")
    assert page.evaluate("window.stayed")

    assert "#toolbar=0" in (page.locator(".sd-paper").get_attribute("src") or "")

    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(line.get_absolute_url())
    page.locator(".sd-viewer").scroll_into_view_if_needed()
    expect(page.locator(".sd-viewer h3")).to_have_text("No statement selected")
    page.get_by_role("link", name="Newest statement").click()
    expect(page.locator(".sd-viewer h3")).to_have_text("Statement of May 15, 2026")


@with_pdf_viewer
def test_a_statement_that_opened_by_itself_stays_open(
    page: Page, portal_service: Sandbox, line: Account
) -> None:
    title = page.locator(".sd-viewer h3")
    page.goto(line.get_absolute_url())
    expect(title).to_have_text("Statement of May 15, 2026")
    Answer.objects.update(asked_at=None)
    portal_service.fail_next("credit_lines.statement", delay=4)
    page.goto(line.get_absolute_url())
    expect(title).to_have_text("Statement of May 15, 2026")
    page.evaluate("document.querySelector('iframe.sd-paper').stays = true")
    with page.expect_response(lambda answer: "/statement" not in answer.url and "?statement=" in answer.url):
        expect(page.locator("#line[hx-trigger]")).to_have_count(1)  # Then the statements follow the line.
    expect(page.locator("#line-age")).to_contain_text("Updated")
    assert page.evaluate("document.querySelector('iframe.sd-paper').stays")


@with_pdf_viewer
def test_a_statement_that_fails_says_why_without_its_buttons(
    page: Page, portal_service: Sandbox, line: Account
) -> None:
    portal_service.fail_next("documents.fetch", status=404, times=None)
    page.goto(f"{line.get_absolute_url()}?statement={DAYS[0]}")
    pane = page.locator(".sd-viewer")
    expect(pane).to_be_attached()
    page.evaluate(
        "document.querySelector('.sd-viewer').scrollIntoView()"
    )  # In one step, as it's loaded again.
    expect(pane.get_by_role("heading", name="This statement isn’t available")).to_be_visible()
    expect(pane.get_by_text("returned status 404 instead of a document")).to_be_visible()
    expect(pane.get_by_role("link", name="Try again")).to_be_visible()
    expect(pane.get_by_role("link", name="Download")).to_have_count(0)
    expect(pane.get_by_role("link", name="Open in new tab")).to_have_count(0)


@with_pdf_viewer
def test_a_statement_that_opens_by_itself_and_fails_adds_no_step_and_one_entry(
    page: Page, portal_service: Sandbox, line: Account
) -> None:
    portal_service.fail_next("documents.fetch", status=404, times=None)
    page.goto(line.get_absolute_url())
    steps = page.evaluate("history.length")
    expect(page.get_by_role("heading", name="This statement isn’t available")).to_be_visible()
    expect(page.locator(".htmx-request")).to_have_count(0)
    assert page.evaluate("history.length") == steps
    assert Entry.objects.filter(action="credit_lines.pdf").count() == 1


def click_without_scrolling(target: Locator) -> None:
    expect(target).to_be_in_viewport()
    target.click()


def test_payoff_and_newest_statement_are_found_without_scrolling(
    page: Page, portal_service: Sandbox, line: Account
) -> None:
    figures = {"payoff_balance": "7687.40", "past_due_balance": "90.00", "days_past_due": 12}
    portal_service.world.amend(line.uuid, **figures)
    panel(browser_of(Role.VIEWER), f"{line.get_absolute_url()}?refresh=1", "line")
    page.goto("/")
    press(page, "/", *"north")
    expect(page.get_by_role("option", name="Northwind Baking")).to_be_visible()
    press(page, "Enter")
    click_without_scrolling(page.get_by_role("region", name="Payoff").get_by_role("link", name="Line"))
    expect(page.locator(".sd-figure", has_text="$7,687.40")).to_be_in_viewport()

    page.goto("/")
    click_without_scrolling(page.get_by_role("link", name="Open line"))
    click_without_scrolling(page.get_by_role("link", name="Newest statement"))
    expect(page.get_by_role("heading", name="Statement of May 15, 2026")).to_be_in_viewport()


@with_pdf_viewer
def test_a_browser_without_a_pdf_viewer_loads_documents_on_demand(page: Page, line: Account) -> None:
    page.add_init_script("Object.defineProperty(navigator, 'pdfViewerEnabled', {get: () => false})")
    requests: list[str] = []
    page.on("request", lambda request: "/pdf/" in request.url and requests.append(request.url))
    page.goto(line.get_absolute_url())
    page.get_by_role("link", name="Newest statement").click()
    expect(page.get_by_text("This browser can’t show PDFs.")).to_be_visible()
    page.wait_for_load_state("networkidle")
    assert requests == []
    with page.expect_download() as download:
        page.get_by_role("link", name="Download", exact=True).click()
    assert download.value.path().read_bytes().startswith(b"%PDF-")
    with page.expect_popup() as opened:
        page.get_by_role("link", name="Open in new tab").click()
    assert opened.value.url.endswith(f"/statements/{DAYS[-1]}/pdf/")


def test_selected_loans_are_refreshed(page: Page, portal_service: Sandbox, borrower: Borrower) -> None:
    for _ in range(3):
        given.loan(portal_service, borrower)
    page.goto("/loans/")
    tab_on_to(page, page.get_by_role("link", name="Select all 3"))
    page.keyboard.press("Enter")
    expect(page.get_by_role("checkbox", name="Select loan", checked=True)).to_have_count(3)
    page.get_by_role("button", name="Refresh selected").press("Enter")
    expect(page.get_by_role("heading", name="3 of 3 refreshed")).to_be_visible()
    expect(page.get_by_role("row").get_by_text("Refreshed", exact=True)).to_have_count(3)
    page.get_by_role("link", name="Back to the list").first.click()
    page.wait_for_url("**/loans/?**")


@pytest.mark.parametrize(
    ("area", "filters"),
    [
        ("/borrowers/", {"past_due": "yes", "application": "open", "from": "2099-01-02", "to": "2020-01-02"}),
        ("/loans/", {"delinquent": "yes"}),
        ("/lines/", {"past_due": "yes"}),
    ],
)
def test_each_filter_narrows_the_list(
    page: Page, loan: Account, line: Account, area: str, filters: dict[str, str]
) -> None:
    rows = page.locator("main [data-row]")
    for name, value in filters.items():
        page.goto(area)
        expect(rows).to_have_count(1)
        field = page.locator(f"main [name={name}]")
        page.get_by_role("button", name="Filters").click()
        field.fill(value) if field.get_attribute("type") == "date" else field.check()
        expect(rows).to_have_count(0)
        expect(page).to_have_url(re.compile(f"[?&]{name}={value}(&|$)"))


def test_a_summary_keeps_each_account_in_its_column_on_a_phone(
    page: Page, portal_service: Sandbox, borrower: Borrower, line: Account
) -> None:
    portal_service.world.repayment(line.uuid, amount="671.11")
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"/borrowers/{borrower.uuid}/summary/?refresh=1")
    account = page.get_by_role("region", name="Repayments").get_by_text(f"Line of credit {line.uuid[:8]}")
    expect(account).to_be_visible()
    beyond = account.evaluate(
        "each => each.getBoundingClientRect().right - each.closest('td').getBoundingClientRect().right"
    )
    assert beyond < 0
