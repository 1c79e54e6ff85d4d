"""Panels in a browser: each loads itself, in view first and four at a time, and leaves what a person does alone."""

from datetime import timedelta
from time import monotonic, sleep

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from portal.accounts.roles import Role
from portal.audit.models import PageView
from portal.records.models import Account, Answer, Borrower, Kind
from servicing.sandbox import Sandbox
from tests import given
from tests.browser.axe import LAYOUT_SHIFT
from tests.conftest import browser_of
from tests.portal.pages import panel

pytestmark = pytest.mark.browser


def grow_old() -> None:
    """Let half a minute pass since the service was last called."""
    then = timezone.now() - timedelta(seconds=31)
    Answer.objects.exclude(asked_at=None).update(asked_at=then, last_at=then)


def most_at_once(page: Page, part: str) -> int:
    """The most requests at once whose address contains this."""
    timings = page.evaluate(
        """part => performance.getEntriesByType("resource").filter(one => one.name.includes(part))
            .map(one => [one.startTime, one.responseEnd])""",
        part,
    )
    return max(sum(begin <= at < end for begin, end in timings) for at, _ in timings)


def test_a_panel_loads_itself_and_its_failure_shows_in_the_header(
    page: Page, portal_service: Sandbox
) -> None:
    loan = given.loan(portal_service, given.borrower(portal_service), amount="12000.00")
    portal_service.world.repayment(loan.uuid, amount="310.00")
    page.goto(loan.get_absolute_url())
    expect(page.locator("#loan")).to_contain_text("$12,000.00")
    expect(page.locator("#loan-repayments")).to_contain_text("$310.00")
    expect(page.locator("[aria-busy]")).to_have_count(0)
    grow_old()
    portal_service.fail_next("loans.get", status=500)
    page.goto(loan.get_absolute_url())
    expect(page.locator("#loan-age")).to_contain_text("Failing since")
    expect(page.locator("#loan-repayments-age")).to_contain_text("Updated")
    expect(page.locator("#health")).to_contain_text("Loans failing since")
    page.locator("#loan-age").get_by_role("link", name="Retry").click()
    expect(page.locator("#loan-age")).to_contain_text("Updated")
    expect(page.locator("#health")).to_contain_text("All systems responding")


def test_four_accounts_load_at_a_time_and_the_cards_follow(page: Page, portal_service: Sandbox) -> None:
    borrower = given.borrower(portal_service)
    for _ in range(10):
        given.loan(portal_service, borrower, amount="1000.00")
    portal_service.fail_next("loans.get", delay=0.3, times=None)
    page.goto(borrower.get_absolute_url())
    expect(page.locator("#position")).to_contain_text("$10,000.00")
    expect(page.locator("#position-age")).to_contain_text("Updated")
    assert most_at_once(page, "/accounts/") == 4


def test_of_many_accounts_those_in_view_load(page: Page, portal_service: Sandbox) -> None:
    borrower = given.borrower(portal_service)
    for _ in range(40):
        given.loan(portal_service, borrower, amount="1000.00")
    page.goto(f"{borrower.get_absolute_url()}?tab=loans")
    rows = page.locator("tr[id^=row-]")
    expect(rows.first).to_contain_text("$1,000.00")
    sleep(2)
    read = Account.objects.filter(kind=Kind.LOAN).exclude(checked_at=None).count()
    assert 3 < read < 40
    rows.last.scroll_into_view_if_needed()
    expect(rows.last).to_contain_text("$1,000.00")


def test_panels_in_view_load_first(page: Page, portal_service: Sandbox) -> None:
    borrower = given.borrower(portal_service)
    late = given.loan(portal_service, borrower, late=2)
    panel(browser_of(Role.VIEWER), late.get_absolute_url(), "loan")
    grow_old()
    for _ in range(13):
        given.loan(portal_service, borrower)
    targets: list[str] = []
    page.on(
        "request",
        lambda request: "/accounts/" in request.url and targets.append(request.headers["hx-target"]),
    )
    portal_service.fail_next("loans.get", delay=0.3, times=None)
    page.goto(f"{borrower.get_absolute_url()}?tab=loans")
    hidden = f"loan-{late.uuid}"
    with page.expect_request(lambda request: request.headers.get("hx-target") == hidden):
        pass  # The cards name the late loan; they are on another tab.
    assert [target.startswith("row-") for target in targets[:4]] == [True] * 4


def test_typing_on_another_tab_survives_a_refresh(page: Page, portal_service: Sandbox) -> None:
    borrower = given.borrower(portal_service)
    given.loan(portal_service, borrower)
    page.goto(borrower.get_absolute_url())
    expect(page.locator("#position-age")).to_contain_text("Updated")
    portal_service.fail_next("loans.get", delay=2)
    page.get_by_role("link", name="Refresh").click()
    page.locator("#tab-notes").click()
    page.locator("#contacts summary").click()
    page.get_by_role("textbox", name="Note").fill("Pays on Friday.")
    with page.expect_response(lambda answer: "refresh=1" in answer.url):
        pass
    expect(page.locator(".htmx-request")).to_have_count(0)
    expect(page.get_by_role("textbox", name="Note")).to_have_value("Pays on Friday.")


def test_accounts_load_while_another_tab_is_open(page: Page, portal_service: Sandbox) -> None:
    borrower = given.borrower(portal_service)
    for _ in range(8):
        given.loan(portal_service, borrower, amount="1000.00")
    portal_service.fail_next("loans.get", delay=0.5, times=None)
    page.goto(f"{borrower.get_absolute_url()}?tab=loans")
    page.locator("#tab-notes").click()
    expect(page.locator("#position")).to_contain_text("$8,000.00")


def test_a_panel_tries_again_and_one_notice_is_enough(page: Page, portal_service: Sandbox) -> None:
    borrower = given.borrower(portal_service)
    for _ in range(6):
        given.loan(portal_service, borrower, amount="1000.00")
    address = "**/accounts/**"
    page.clock.install()
    notice = '<div class="sd-toast sd-toast-bad"><p><b>Away for a moment.</b></p></div>'
    page.route(address, lambda route: route.fulfill(status=502, body=notice))
    page.goto(borrower.get_absolute_url())
    expect(page.locator(".sd-toast-bad")).to_have_count(1)
    page.clock.run_for(20_000)
    expect(page.locator(".sd-toast-bad")).to_have_count(1)
    page.unroute(address)
    page.clock.run_for(20_000)
    expect(page.locator("#position")).to_contain_text("$6,000.00")


def test_an_error_page_of_something_between_is_told_once(page: Page, portal_service: Sandbox) -> None:
    borrower = given.borrower(portal_service)
    for _ in range(6):
        given.loan(portal_service, borrower)
    page.route("**/accounts/**", lambda route: route.fulfill(status=502, body="<h1>Bad gateway</h1>"))
    page.goto(borrower.get_absolute_url())
    expect(page.locator("#toasts h1")).to_have_count(1)
    expect(page.locator(".htmx-request")).to_have_count(0)
    expect(page.locator("#toasts > *")).to_have_count(1)


def test_another_tab_of_the_same_page_waits_for_no_panel(page: Page, portal_service: Sandbox) -> None:
    loan = given.loan(portal_service, given.borrower(portal_service))
    portal_service.fail_next("loans.get", delay=6)
    page.goto(loan.get_absolute_url())
    expect(page.locator("#loan.htmx-request")).to_have_count(1)
    other = page.context.new_page()
    other.goto(loan.get_absolute_url(), wait_until="commit")
    expect(page.locator("#loan.htmx-request")).to_have_count(1)
    expect(other.locator("#loan")).to_contain_text("$12,000.00")


def test_a_second_click_on_refresh_reads_nothing_more(page: Page, portal_service: Sandbox) -> None:
    borrower = given.borrower(portal_service)
    given.loan(portal_service, borrower)
    page.goto(borrower.get_absolute_url())
    expect(page.locator("#position-age")).to_contain_text("Updated")
    before = len(portal_service.calls)
    portal_service.fail_next("loans.get", delay=1)
    page.get_by_role("link", name="Refresh").dblclick()
    expect(page.locator("#refresh.htmx-request")).to_have_count(1)
    expect(page.locator("#refresh.htmx-request")).to_have_count(0)
    expect(page.locator(".htmx-request")).to_have_count(0)
    assert len(portal_service.calls) == before + 2


def test_the_open_tab_and_the_counts_follow_the_accounts(page: Page, portal_service: Sandbox) -> None:
    loan = given.loan(portal_service, given.borrower(portal_service))
    portal_service.world.repayment(loan.uuid, amount="310.00")
    page.goto(Borrower.objects.get().get_absolute_url())
    expect(page.locator("#tab-repayments")).to_contain_text("1")
    expect(page.locator("#borrower-tab .sd-timeline")).to_contain_text("$310.00")
    assert PageView.objects.filter(page="borrowers.detail").get().count == 1


def test_refresh_of_the_repayments_reads_them(page: Page, portal_service: Sandbox) -> None:
    loan = given.loan(portal_service, given.borrower(portal_service))
    page.goto(loan.get_absolute_url())
    expect(page.locator("#loan-repayments-age")).to_contain_text("Updated")
    portal_service.world.repayment(loan.uuid, amount="310.00")
    page.locator("#loan-repayments-age").get_by_role("link", name="Refresh").click()
    expect(page.locator("#loan-repayments")).to_contain_text("$310.00")


def test_ticked_boxes_stay_ticked(page: Page, portal_service: Sandbox) -> None:
    borrower = given.borrower(portal_service)
    uuid = portal_service.world.line_application(borrower.uuid)["uuid"]
    application = given.account(Kind.APPLICATION, borrower, uuid)
    page.goto(application.get_absolute_url())
    expect(page.locator("#application-age")).to_contain_text("Updated")
    grow_old()
    portal_service.fail_next("applications.get_for_line", delay=1.5)
    page.goto(application.get_absolute_url())
    boxes = page.locator("#offers input[type=checkbox]")
    page.locator("#offers summary", has_text="Choose offers").click()
    boxes.first.check()
    expect(page.locator("#application[hx-trigger]")).to_have_count(1)
    expect(page.locator("#application[hx-trigger]")).to_have_count(0)
    expect(boxes.first).to_be_checked()


def test_what_a_person_does_meanwhile_stays(page: Page, portal_service: Sandbox) -> None:
    line = given.line(portal_service, given.borrower(portal_service), opened=timezone.localdate())
    for day in ("2026-01-15", "2026-02-15"):
        portal_service.world.statement(line.uuid, day)
    page.goto(line.get_absolute_url())
    expect(page.locator("#line-age")).to_contain_text("Updated")
    page.locator("#contacts").scroll_into_view_if_needed()
    grow_old()
    portal_service.fail_next("credit_lines.statement", delay=2)
    page.goto(line.get_absolute_url())
    page.locator("#contacts").scroll_into_view_if_needed()
    page.locator("#contacts summary").click()
    page.get_by_role("textbox", name="Note").fill("Pays on Friday.")
    place = page.evaluate("scrollY")
    expect(page.locator("#line[hx-trigger]")).to_have_count(1)
    expect(page.locator("#line[hx-trigger]")).to_have_count(0)
    expect(page.get_by_role("textbox", name="Note")).to_have_value("Pays on Friday.")
    expect(page.get_by_role("textbox", name="Note")).to_be_focused()
    assert abs(page.evaluate("scrollY") - place) < 2


def test_a_menu_that_is_open_stays_open_and_focused(page: Page, portal_service: Sandbox) -> None:
    loan = given.loan(portal_service, given.borrower(portal_service))
    page.goto(loan.get_absolute_url())
    expect(page.locator("#loan-age")).to_contain_text("Updated")
    grow_old()
    portal_service.fail_next("loans.get", delay=1.5)
    portal_service.world.amend(loan.uuid, status="CHARGED_OFF")
    page.goto(loan.get_absolute_url())
    menu = page.locator("#loan .sd-menu summary")
    menu.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#loan")).to_contain_text("Charged off")
    expect(menu).to_be_focused()
    expect(page.locator("#loan .sd-menu")).to_have_attribute("open", "")


def test_rows_that_were_opened_meanwhile_stay_open(page: Page, portal_service: Sandbox) -> None:
    loan = given.loan(portal_service, given.borrower(portal_service), installments=36, paid=20)
    page.goto(loan.get_absolute_url())
    expect(page.locator("#loan-age")).to_contain_text("Updated")
    grow_old()
    portal_service.fail_next("loans.get", delay=1.5)
    page.goto(loan.get_absolute_url())
    page.get_by_role("link", name="earlier").first.click()
    expect(page.locator("#loan-schedule [data-row], #loan-schedule tbody tr")).not_to_have_count(0)
    expect(page.locator("#loan-schedule")).to_have_attribute("data-announce", "36 of 36 installments shown")
    expect(page.locator("[aria-busy]")).to_have_count(0)
    expect(page.locator("#loan-schedule")).to_have_attribute("data-announce", "36 of 36 installments shown")


def test_a_panel_looks_again_while_a_colleague_reads(page: Page, portal_service: Sandbox) -> None:
    loan = given.loan(portal_service, given.borrower(portal_service), amount="12000.00")
    now = timezone.now()
    said = Answer.objects.create(kind=Kind.LOAN, uuid=loan.uuid, asked_at=now)
    Account.objects.filter(pk=loan.pk).update(answer=said)
    page.goto(loan.get_absolute_url())
    expect(page.locator("#loan")).to_have_attribute("hx-trigger", "every 2s")
    started = monotonic()
    Answer.objects.filter(pk=said.pk).update(asked_at=None)
    expect(page.locator("#loan")).to_contain_text("$12,000.00")
    assert monotonic() - started < 4


@pytest.mark.parametrize("width", [1440, 390])
def test_a_slow_answer_does_not_shift_the_borrower_page(
    page: Page, portal_service: Sandbox, width: int
) -> None:
    owner = given.borrower(portal_service, first_name="Harbor Bakery of the Pacific Northwest LLC")
    given.loan(portal_service, owner, amount="12000.00")
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(owner.get_absolute_url())
    expect(page.locator("#position-age")).to_contain_text("Updated")
    grow_old()
    portal_service.fail_next("loans.get", delay=1)
    page.goto(owner.get_absolute_url())
    expect(page.locator("#position-age")).to_contain_text("Loading")
    expect(page.locator("#position-age")).to_contain_text("Updated")
    assert page.evaluate(LAYOUT_SHIFT) < 0.01
