"""Panels: a page shows saved copies, and each panel whose copy is old loads itself."""

import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from time import monotonic

import pytest
from django.core.management import call_command
from django.test import Client as Browser
from django.utils import timezone

from portal.accounts.roles import Role
from portal.audit.models import PageView, RemoteCall
from portal.jobs.models import Job
from portal.records.models import Account, Answer, Borrower, Kind
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import browser_of, htmx
from tests.portal.pages import age_record_views, card, load_panels, page, panel, plain, visible_text

# Other threads call the service
pytestmark = [pytest.mark.postgres, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def loan(portal_service: Sandbox) -> Account:
    return given.loan(portal_service, given.borrower(portal_service), amount="12000.00")


def grow_old() -> None:
    """Let half a minute pass since the service was last called."""
    then = timezone.now() - timedelta(seconds=31)
    Answer.objects.exclude(asked_at=None).update(asked_at=then, last_at=then)


def calls(service: Sandbox) -> Counter[tuple[str, str]]:
    """How often each record was read, by operation and path."""
    return Counter((call.operation, call.path) for call in service.calls)


def test_a_page_calls_nobody(viewer: Browser, portal_service: Sandbox, loan: Account) -> None:
    for record in (loan, Borrower.objects.get()):
        shown = page(viewer, record.get_absolute_url())
        plain(viewer, record.get_absolute_url())
        assert "$12,000.00" not in shown
    assert portal_service.calls == []


@pytest.mark.slow
def test_a_panel_reads_the_account_and_its_repayments_once(
    viewer: Browser, portal_service: Sandbox, loan: Account
) -> None:
    answer = load_panels(viewer, loan.get_absolute_url())["loan"]
    assert "$12,000.00" in answer
    assert "aria-busy" not in answer
    reads = given.reads_of(Kind.LOAN)
    assert sorted(call.operation for call in portal_service.calls) == sorted(reads)
    assert load_panels(viewer, loan.get_absolute_url()) == {}
    panel(viewer, loan.get_absolute_url(), "loan")
    assert len(portal_service.calls) == len(reads)


@pytest.mark.slow
def test_the_two_answers_are_read_at_once(viewer: Browser, portal_service: Sandbox, loan: Account) -> None:
    portal_service.fail_next("*", delay=0.6, times=None)
    assert "$12,000.00" in panel(viewer, loan.get_absolute_url(), "loan")
    ends = RemoteCall.objects.values_list("at", "duration_ms")
    begins = [end - timedelta(milliseconds=duration) for end, duration in ends]
    assert max(begins) < min(end for end, _ in ends)


@pytest.mark.parametrize(("age", "is_due"), [(29, False), (31, True)])
def test_a_panel_loads_itself_once_its_copy_is_half_a_minute_old(
    viewer: Browser, portal_service: Sandbox, loan: Account, age: int, is_due: bool
) -> None:
    panel(viewer, loan.get_absolute_url(), "loan")
    before = timezone.now() - timedelta(seconds=age)
    Answer.objects.update(asked_at=before, last_at=before)
    assert ("loan" in load_panels(viewer, loan.get_absolute_url())) is is_due
    assert len(portal_service.calls) == (1 + is_due) * len(given.reads_of(Kind.LOAN))


def test_a_call_that_took_half_a_minute_is_not_due_again_at_once(
    viewer: Browser, portal_service: Sandbox, loan: Account
) -> None:
    portal_service.fail_next("loans.get", status=500)
    panel(viewer, loan.get_absolute_url(), "loan")
    asked = timezone.now() - timedelta(seconds=31)
    Answer.objects.exclude(asked_at=None).update(asked_at=asked)
    assert load_panels(viewer, loan.get_absolute_url()) == {}
    assert "hx-trigger" not in panel(viewer, loan.get_absolute_url(), "loan").partition(">")[0]
    assert len(portal_service.calls) == len(given.reads_of(Kind.LOAN))


@pytest.mark.slow
def test_what_no_borrower_is_confirmed_for_says_so_instead_of_a_refresh(
    viewer: Browser, portal_service: Sandbox, loan: Account
) -> None:
    address = loan.get_absolute_url()
    panel(viewer, address, "loan")
    Account.objects.filter(uuid=loan.uuid).update(borrower_uuid="")
    shown = page(viewer, address)
    assert "Refresh, correct the record’s borrower first" in visible_text(shown).replace(" ,", ",")
    assert "refresh=1" not in shown
    assert load_panels(viewer, address) == {}


def test_the_cards_say_how_many_are_loaded(viewer: Browser, portal_service: Sandbox, loan: Account) -> None:
    borrower = Borrower.objects.get()
    given.loan(portal_service, borrower)
    panel(viewer, loan.get_absolute_url(), "loan")
    shown = panel(viewer, borrower.get_absolute_url(), "position")
    assert "2 of 3 loaded" in visible_text(shown)


def test_links_of_a_panel_lead_to_the_page(viewer: Browser, portal_service: Sandbox, loan: Account) -> None:
    assert "panel=" not in load_panels(viewer, loan.get_absolute_url())["loan"]


def test_a_panel_of_a_tab_left_open_is_no_page_view(
    viewer: Browser, portal_service: Sandbox, loan: Account
) -> None:
    page(viewer, loan.get_absolute_url())
    age_record_views()
    panel(viewer, loan.get_absolute_url(), "loan")
    assert PageView.objects.filter(subject_uuid=loan.uuid).get().count == 1


@pytest.mark.slow
def test_a_panel_is_no_page_view(viewer: Browser, portal_service: Sandbox, loan: Account) -> None:
    borrower = Borrower.objects.get()
    for address in (loan.get_absolute_url(), borrower.get_absolute_url()):
        grow_old()
        load_panels(viewer, address)
    views = PageView.objects.order_by("page").values_list("page", "count")
    assert list(views) == [("borrowers.detail", 1), ("loans.detail", 1)]


def test_an_account_requested_alone_is_a_view_of_its_borrower(
    viewer: Browser, portal_service: Sandbox, loan: Account
) -> None:
    panel(viewer, f"/borrowers/{loan.borrower_uuid}/accounts/loan/{loan.uuid}/", f"loan-{loan.uuid}")
    view = PageView.objects.get()
    assert (view.page, view.subject_uuid) == ("borrowers.detail", loan.borrower_uuid)


@pytest.mark.slow
def test_while_somebody_else_reads_the_copy_is_shown_and_looked_at_again(
    viewer: Browser, portal_service: Sandbox, loan: Account
) -> None:
    panel(viewer, loan.get_absolute_url(), "loan")
    grow_old()
    portal_service.fail_next("loans.get", delay=1.5)
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(lambda: panel(browser_of(Role.SERVICER), loan.get_absolute_url(), "loan"))
        while not any(call.operation == "loans.get" for call in portal_service.calls[2:]):
            pass
        started = monotonic()
        shown = panel(viewer, loan.get_absolute_url(), "loan")
        assert monotonic() - started < 1
        assert 'hx-trigger="every 2s"' in shown
        assert "$12,000.00" in shown
        assert "hx-trigger" not in re.sub("<section.*", "", other.result(), flags=re.DOTALL)
    assert "every 2s" not in panel(viewer, loan.get_absolute_url(), "loan")
    assert max(calls(portal_service).values()) == 2


@pytest.mark.slow
def test_ten_people_open_a_borrower_with_forty_accounts(portal_service: Sandbox) -> None:
    borrower = given.borrower(portal_service)
    for number in range(40):
        make = given.loan if number < 12 else given.line
        make(portal_service, borrower)
    browsers = [browser_of(role) for role in (Role.VIEWER, Role.SERVICER, Role.SUPERVISOR) * 4][:10]
    address = f"{borrower.get_absolute_url()}?tab=loans"

    def load_rows(browser: Browser, shown: str) -> list[str]:
        """Load the rows that are due, and again those that another reads or that failed, as a browser does."""
        loaded = {}
        waiting = re.findall(r'id="(row-[\w-]+)" hx-get="([^"]*)" hx-trigger="due" data-due="in-view"', shown)
        limit = monotonic() + 60
        while waiting and monotonic() < limit:
            answers = {(name, url): browser.get(url, headers=htmx(name)) for name, url in waiting}
            loaded |= {row: answer for row, answer in answers.items() if answer.status_code == 200}
            waiting = [
                row
                for row, answer in answers.items()
                if answer.status_code != 200 or 'hx-trigger="' in answer.content.decode()
            ]
        return [name for name, _ in loaded]

    with ThreadPoolExecutor(10) as pool:
        pages = list(pool.map(lambda browser: page(browser, address), browsers))
        shown = list(pool.map(load_rows, browsers, pages))
    assert [len(rows) for rows in shown] == [12] * 10
    read = calls(portal_service)
    assert Counter(operation for operation, _ in read) == dict.fromkeys(given.reads_of(Kind.LOAN), 12)
    assert set(read.values()) == {1}


@pytest.mark.slow
def test_of_many_accounts_the_cards_load_those_they_name(viewer: Browser, portal_service: Sandbox) -> None:
    borrower = given.borrower(portal_service)
    for _ in range(13):
        given.loan(portal_service, borrower)
    late = given.loan(portal_service, borrower, late=2)
    panel(viewer, late.get_absolute_url(), "loan")
    grow_old()
    assert f"loan-{late.uuid}" in load_panels(viewer, borrower.get_absolute_url())
    assert len(portal_service.calls) <= 6


@pytest.mark.slow
def test_twelve_accounts_load_themselves_and_thirteen_wait(viewer: Browser, portal_service: Sandbox) -> None:
    borrower = given.borrower(portal_service)
    for _ in range(12):
        given.loan(portal_service, borrower)
    assert len(load_panels(viewer, borrower.get_absolute_url())) == 12
    given.loan(portal_service, borrower)
    grow_old()
    shown = page(viewer, f"{borrower.get_absolute_url()}?tab=loans")
    assert shown.count('data-due="in-view"') == 13


@pytest.mark.slow
def test_a_job_refreshes_all_of_many_accounts(viewer: Browser, portal_service: Sandbox) -> None:
    borrower = given.borrower(portal_service)
    for _ in range(13):
        given.loan(portal_service, borrower)
    address = borrower.get_absolute_url()
    for _ in range(2):
        assert viewer.post(f"{address}refresh/").status_code == 303
    job = Job.objects.get(name="borrowers.refresh_accounts")
    assert f'hx-get="{job.get_absolute_url()}"' in page(viewer, address)
    call_command("work", batch=True)
    job.refresh_from_db()
    assert (job.state, job.done, job.failed) == (Job.State.DONE, 13 * len(given.reads_of(Kind.LOAN)), 0)
    assert set(calls(portal_service).values()) == {1}
    assert job.get_absolute_url() not in page(viewer, address)


@pytest.mark.slow
def test_without_scripts_the_refresh_button_waits(
    viewer: Browser, portal_service: Sandbox, loan: Account
) -> None:
    borrower = Borrower.objects.get()
    for record in (loan, borrower):
        portal_service.fail_next("loans.get", delay=1)
        assert "$12,000.00" in plain(viewer, f"{record.get_absolute_url()}?refresh=1")
    assert len(portal_service.calls) == 2 * len(given.reads_of(Kind.LOAN))


@pytest.mark.slow
def test_a_page_that_was_refreshed_does_not_refresh_again_by_itself(
    viewer: Browser, portal_service: Sandbox, loan: Account
) -> None:
    address = f"{loan.get_absolute_url()}?refresh=1"
    plain(viewer, address)
    panel(viewer, address, "loan", **{"HX-Trigger": "loan"})
    reads = len(given.reads_of(Kind.LOAN))
    assert len(portal_service.calls) == reads
    panel(viewer, address, "loan", **{"HX-Trigger": "loan-refresh"})
    assert len(portal_service.calls) == 2 * reads


def test_the_cards_follow_the_accounts(viewer: Browser, portal_service: Sandbox, loan: Account) -> None:
    borrower = Borrower.objects.get()
    shown = page(viewer, borrower.get_absolute_url())
    own = borrower.get_absolute_url()
    assert f'id="position" hx-get="{own}?" hx-trigger="account:read from:body delay:200ms' in shown
    address = f"{borrower.get_absolute_url()}accounts/loan/{loan.uuid}/"
    answer = viewer.get(address, headers=htmx(f"loan-{loan.uuid}"))
    assert answer["HX-Trigger"] == '{"account:read": {}}'
    cards = panel(viewer, borrower.get_absolute_url(), "position")
    assert f"Loan {loan.uuid[:8]}" in card(cards, "Due next")
    assert re.findall(r'id="([\w-]+)"[^>]*hx-swap-oob="true"', cards) == ["position-age", "health"]
    assert len(portal_service.calls) == len(given.reads_of(Kind.LOAN))


def test_an_account_is_read_for_its_own_borrower_only(
    viewer: Browser, portal_service: Sandbox, loan: Account
) -> None:
    other = given.borrower(portal_service)
    address = f"{other.get_absolute_url()}accounts/loan/{loan.uuid}/"
    assert viewer.get(address, headers=htmx(f"loan-{loan.uuid}")).status_code == 404
    own = f"/borrowers/{loan.borrower_uuid}/accounts"
    assert viewer.get(f"{own}/borrower/{loan.borrower_uuid}/", headers=htmx("x")).status_code == 404
    assert viewer.get(f"{own}/loan/{loan.uuid}/")["Location"] == loan.get_absolute_url()
    assert portal_service.calls == []


@pytest.mark.slow
def test_borrower_cards_show_their_age_once(viewer: Browser, portal_service: Sandbox, loan: Account) -> None:
    given.line(portal_service, borrower := Borrower.objects.get())
    shown = page(viewer, borrower.get_absolute_url())
    assert re.findall(r'id="([\w-]+-age)"', shown) == ["position-age"]
    portal_service.fail_next("credit_lines.statement", status=500, times=None)
    load_panels(viewer, borrower.get_absolute_url())
    answer = panel(viewer, borrower.get_absolute_url(), "position")
    assert visible_text(answer).count("Failing since") == 1
    assert f"Loan {loan.uuid[:8]}" in card(answer, "Due next")


def test_a_failed_panel_is_reported_in_the_header(
    viewer: Browser, portal_service: Sandbox, loan: Account
) -> None:
    panel(viewer, loan.get_absolute_url(), "loan")
    assert "All systems responding" in page(viewer, loan.get_absolute_url())
    grow_old()
    portal_service.fail_next("loans.get", status=500)
    answer = panel(viewer, loan.get_absolute_url(), "loan")
    assert "Failing since" in visible_text(answer)
    assert "Loans failing since" in visible_text(answer.partition('id="health"')[2])


@pytest.mark.slow
def test_links_of_panels_omit_the_refresh(viewer: Browser, portal_service: Sandbox, loan: Account) -> None:
    given.line(portal_service, Borrower.objects.get())
    for record in (*Borrower.objects.all(), *Account.objects.filter(kind__in=[Kind.LOAN, Kind.LINE])):
        shown = plain(viewer, f"{record.get_absolute_url()}?refresh=1")
        refreshing = re.sub(r'<a [^>]*id="(?:[\w-]+-)?refresh"[^>]*>', "", shown)
        assert not re.findall(r'(?:href|hx-get)="[^"]*refresh=[^"]*"', refreshing)
