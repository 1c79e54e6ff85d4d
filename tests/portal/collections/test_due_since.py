"""The days after a copy: what fell due since then is neither past due nor hidden, until an answer says more."""

import csv
import io
import re
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client as Browser
from django.urls import reverse
from django.utils import timezone

from portal.audit.models import Entry
from portal.core.business_date import business_date
from portal.jobs.models import Job
from portal.messaging.models import PendingRead
from portal.messaging.tasks import start_reading_news
from portal.records.models import Account, Borrower, Kind, PastDueChange
from portal.ui import wording
from servicing.sandbox import Sandbox
from tests import given
from tests.portal import pages
from tests.portal.collections.conftest import advance, late_loan, refresh
from tests.portal.jobs.scripted import run_taken

pytestmark = [pytest.mark.postgres, pytest.mark.slow, pytest.mark.django_db]
LISTS = {"loan": "/loans/", "line": "/lines/"}


def current_loan(sandbox: Sandbox, **terms: Any) -> Account:
    """Create a loan of $100 a month whose next installment is due in two days."""
    opened = sandbox.world.clock.today() - timedelta(days=28)
    loan = late_loan(sandbox, opened=opened)
    rows = sandbox.world.account(loan.uuid).body["installments"]
    due = str(business_date() + timedelta(days=2))
    rows = [one | {"status": "SCHEDULED", "paid_on": None} for one in rows]
    rows[0]["due_date"] = due
    sandbox.world.amend(loan.uuid, installments=rows[:1], **terms)
    refresh(loan)
    return loan


def current_line(sandbox: Sandbox) -> Account:
    """Create a line with a bill of $62.50 due in two days."""
    terms = {"payment_amount_due": Decimal("62.50"), "payment_due_date": str(business_date() + timedelta(2))}
    balances = {"past_due_balance": Decimal(0), "days_past_due": 0}
    line = given.line(sandbox, given.borrower(sandbox), **balances, **terms)
    refresh(line)
    return line


def rows_of(browser: Browser, address: str) -> dict[str, str]:
    """Return the text of each row of a list by the account's ID."""
    page = browser.get(address).content.decode()
    rows = [row.partition("</tr>")[0] for row in page.split("<tr data-row>")[1:]]
    return {re.findall(r'value="([^"]+)"', row)[0]: pages.visible_text(row) for row in rows}


def cell(browser: Browser, address: str, uuid: str, head: str) -> str:
    """Return the text of one cell of a list."""
    page = browser.get(address).content.decode()
    heads = [
        pages.visible_text(one) for one in re.findall(r"<th scope=\"col\"[^>]*>.*?</th>", page, re.DOTALL)
    ]
    row = next(one for one in page.split("<tr data-row>")[1:] if f'value="{uuid}"' in one)
    cells = re.findall(r"<(?:td|th)[^>]*>.*?</(?:td|th)>", row.partition("</tr>")[0], re.DOTALL)
    return pages.visible_text(cells[heads.index(head) + 1])  # The first cell is the checkbox.


def files(browser: Browser, address: str) -> dict[str, dict[str, str]]:
    text = browser.get(f"{address}export.csv?all=1").getvalue().decode("utf-8-sig")
    return {
        row.get("Account") or row.get("Loan") or row["Line"]: row for row in csv.DictReader(io.StringIO(text))
    }


def short(day: date) -> str:
    return f"{day:%b} {day.day}" if day.year == business_date().year else f"{day:%b} {day.day}, {day.year}"


def test_a_long_schedule_opens_at_what_fell_due_since_the_copy(sandbox: Sandbox, servicer: Browser) -> None:
    # Ten installments are paid, and the next one is due in about two weeks.
    loan = late_loan(sandbox, installments=60, paid=10, opened=business_date() - timedelta(days=320))
    advance(sandbox, 20)
    shown = pages.visible_text(pages.page(servicer, loan.get_absolute_url()))
    assert "Show 7 earlier installments" in shown


@pytest.mark.parametrize("kind", ["loan", "line"])
def test_a_current_account_is_never_called_past_due_by_the_passing_of_days(
    sandbox: Sandbox, servicer: Browser, kind: str
) -> None:
    account = current_loan(sandbox) if kind == "loan" else current_line(sandbox)
    amount = "$100.00" if kind == "loan" else "$62.50"
    copied_on, due = business_date(), business_date() + timedelta(days=2)
    for days, is_since in ((2, False), (1, True), (9, True)):
        advance(sandbox, days)
        row = files(servicer, LISTS[kind])[account.uuid]
        assert (row["Past due"], row["Days past due"], row["Aging"]) == ("0.00", "0", "Current")
        assert row["Copy of"] == str(copied_on)
        assert row["Due since the copy"] == (amount[1:] if is_since else "")
        assert row["Oldest due since the copy"] == (str(due) if is_since else "")
        words = f"{amount} due {short(due)}, not updated since {short(copied_on)}"
        assert cell(servicer, LISTS[kind], account.uuid, "Past due") == (words if is_since else "")
        assert rows_of(servicer, "/collections/").keys() == ({account.uuid} if is_since else set())
    assert not PastDueChange.objects.exists()
    said = f"{amount} due {wording.day(due)}, not updated since {wording.day(copied_on)}"
    of_account = pages.visible_text(pages.page(servicer, account.get_absolute_url()))
    rest = said.removeprefix(f"{amount} d")
    words = f"{amount} D{rest}" if kind == "loan" else f"d{rest} {amount}"
    assert f"Due since the copy {words}" in of_account
    owner = Borrower.objects.get(uuid=account.borrower_uuid)
    of_borrower = pages.page(servicer, owner.get_absolute_url())
    assert pages.card(of_borrower, "Past due") == ""
    link = f"{kind.capitalize()} {account.uuid[:8]}"
    since = pages.card(of_borrower, "Due since the copy")
    assert since == f"Due since the copy {amount} {link} , due {due:%b} {due.day}"
    (row,) = pages.cells(of_borrower, "Loans and lines of credit of this borrower")
    assert (row["Account"].removesuffix(said).split()[:2], row["Past due"]) == (link.split(), "")
    assert row["Account"].endswith(said)
    printed = pages.visible_text(
        servicer.get(reverse("documents:borrower", args=[owner.uuid])).content.decode()
    )
    assert f"Past due: $0.00 . {amount} due since the copy, not included." in printed
    assert f"Due since the copy, not past due: {said}" in printed


def test_past_due_stays_that_of_the_copy_and_what_fell_due_since_is_apart(
    sandbox: Sandbox, servicer: Browser
) -> None:
    loan = late_loan(sandbox)
    before = files(servicer, "/collections/")[loan.uuid]
    copied_on = business_date()
    due_next = date.fromisoformat(before["Due next"])
    advance(sandbox, (due_next - copied_on).days + 1)
    after = files(servicer, "/collections/")[loan.uuid]
    assert after["Past due"] == before["Past due"] == "300.00"
    assert after["Due since the copy"] == "100.00"
    days = int(before["Days past due"]) + (business_date() - copied_on).days
    assert int(after["Days past due"]) == days
    shown = cell(servicer, "/collections/", loan.uuid, "Past due")
    assert shown == f"$300.00 {days} days as of {short(copied_on)} $100.00 due {short(due_next)}"
    tabs = pages.visible_text(servicer.get("/collections/").content.decode())
    assert "All 1 $300.00" in tabs
    assert "Due since the copy: 1 account, $100.00" in tabs


def test_due_since_accounts_come_last_and_are_in_no_tab(sandbox: Sandbox, servicer: Browser) -> None:
    late, current = late_loan(sandbox), current_loan(sandbox)
    advance(sandbox, 3)
    assert list(rows_of(servicer, "/collections/")) == [late.uuid, current.uuid]
    assert list(rows_of(servicer, "/collections/?sort=-past_due")) == [late.uuid, current.uuid]
    assert list(rows_of(servicer, "/collections/?due_since=yes")) == [current.uuid]
    page = pages.visible_text(servicer.get("/collections/").content.decode())
    assert "All 1 $300.00" in page
    assert "Current" not in page.partition("Due since the copy")[0]
    printed = pages.visible_text(servicer.get("/collections/print/").content.decode())
    assert "Due since the copy, not past due: 1 account, $100.00" in printed


def test_home_lists_what_fell_due_since_its_copy_with_its_sum(sandbox: Sandbox, servicer: Browser) -> None:
    loan, line = current_loan(sandbox), current_line(sandbox)
    assert "Due since the copy" not in pages.visible_text(pages.page(servicer, "/"))
    advance(sandbox, 4)
    page = servicer.get("/?show=due_since").content.decode()
    keys = re.findall(r'data-item="(since:[^"]+)"', page)
    assert {key.split(":")[1] for key in keys} == {loan.uuid, line.uuid}
    shown = pages.visible_text(page)
    assert "Due since the copy 2 $162.50" in shown
    assert "past due on" not in shown


def test_the_same_answer_a_day_after_the_due_date_is_past_due(sandbox: Sandbox, servicer: Browser) -> None:
    loan = current_loan(sandbox, autopay_enabled=False)
    sandbox.world.store.require("loan", loan.uuid)
    raw = sandbox.world.account(loan.uuid).body
    advance(sandbox, 3)
    sandbox.world.amend(loan.uuid, **{name: raw[name] for name in ("installments", "delinquent", "status")})
    text = Account.objects.get(pk=loan.pk).answer.body
    refresh(loan)
    assert Account.objects.get(pk=loan.pk).answer.body == text
    row = files(servicer, "/collections/")[loan.uuid]
    assert (row["Past due"], row["Days past due"], row["Due since the copy"]) == ("100.00", "1", "")
    (change,) = PastDueChange.objects.all()
    assert (change.record_id, change.is_cured) == (loan.pk, False)


def test_one_button_reads_the_accounts_that_are_due_since_their_copy(
    sandbox: Sandbox, servicer: Browser, settings: Any
) -> None:
    settings.READS_PER_MINUTE = 60_000
    late, loan, line = late_loan(sandbox), current_loan(sandbox), current_line(sandbox)
    advance(sandbox, 4)
    answer = servicer.post("/collections/update-due-since/", {"back": "?sort=-past_due"})
    assert (answer.status_code, answer["Location"]) == (303, "/collections/?sort=-past_due")
    assert set(PendingRead.objects.values_list("account", flat=True)) == {loan.pk, line.pk}
    assert Entry.objects.filter(action="collections.refresh", subject_label="2 accounts").count() == 1
    before = len(sandbox.calls)
    start_reading_news()
    run_taken(Job.objects.get(name="messaging.read_news"))
    calls = sandbox.calls[before:]
    assert sorted(call.operation for call in calls) == sorted(given.reads_of(Kind.LOAN, Kind.LINE))
    assert not Account.objects.filter(due_since_on__isnull=False, pk__in=[loan.pk, line.pk]).exists()
    assert late.uuid in rows_of(servicer, "/collections/")


def test_a_refresh_reads_first_what_is_due_since_its_copy_then_what_is_past_due(
    sandbox: Sandbox, servicer: Browser
) -> None:
    fine = late_loan(sandbox, opened=sandbox.world.clock.today())
    late, current = late_loan(sandbox), current_loan(sandbox)
    advance(sandbox, 3)
    files(servicer, "/loans/")  # Brings the figures up to the new day.
    Account.objects.filter(uuid=fine.uuid).update(checked_at=timezone.now() - timedelta(days=9))
    before = len(sandbox.calls)
    call_command("refresh_portfolio", rate=1000, older_than=0, verbosity=0)
    order = [call.path.split("/")[-1] for call in sandbox.calls[before:] if call.operation == "loans.get"]
    assert order == [current.uuid, late.uuid, fine.uuid]


class TestScheduledBesideDue:
    """A payment due soon with autopay on, for which less is scheduled than is due."""

    @pytest.mark.parametrize(
        ("scheduled", "days", "is_item"),
        [
            ((), 10, True),
            ((), 11, False),
            (("99.99",), 3, True),
            (("100.00",), 3, False),
            (("40.00", "60.00"), 3, False),
        ],
    )
    def test_it_is_an_item_and_a_filter(
        self, sandbox: Sandbox, servicer: Browser, scheduled: tuple[str, ...], days: int, is_item: bool
    ) -> None:
        loan = current_loan(sandbox, autopay_enabled=True)
        self.due_in(sandbox, loan, days, scheduled)
        found = files_of(servicer, "?scheduled=no")
        assert found == ({loan.uuid} if is_item else set())
        home = servicer.get("/?show=unscheduled").content.decode()
        assert (f"unscheduled:{loan.uuid}:" in home) == is_item

    def test_without_autopay_or_an_open_status_nothing_is_missing(
        self, sandbox: Sandbox, servicer: Browser
    ) -> None:
        for terms in ({"autopay_enabled": False}, {"status": "CLOSED"}, {"autopay_enabled": None}):
            loan = current_loan(sandbox, **{"autopay_enabled": True} | terms)
            self.due_in(sandbox, loan, 3, ())
        assert files_of(servicer, "?scheduled=no") == set()

    def due_in(self, sandbox: Sandbox, loan: Account, days: int, scheduled: tuple[str, ...]) -> None:
        due = business_date() + timedelta(days=days)
        (row,) = sandbox.world.account(loan.uuid).body["installments"]
        sandbox.world.amend(loan.uuid, installments=[row | {"due_date": str(due)}])
        for one in sandbox.world.store.all("repayment", owner=loan.uuid):
            sandbox.world.amend(one.uuid, status="FAILED")
        for amount in scheduled:
            sandbox.world.repayment(loan.uuid, amount=amount, status="SCHEDULED", effective_date=due)
        refresh(loan)


def files_of(browser: Browser, query: str) -> set[str]:
    text = browser.get(f"/loans/export.csv{query}&all=1").getvalue().decode("utf-8-sig")
    return {row["Loan"] for row in csv.DictReader(io.StringIO(text))}


def test_a_new_loan_without_installments_has_no_schedule_yet(sandbox: Sandbox, servicer: Browser) -> None:
    loan = late_loan(sandbox)
    opened = business_date() - timedelta(days=30)
    terms = {"installments": [], "delinquent": False, "repayments_start_date": None}
    sandbox.world.amend(loan.uuid, opening_date=str(opened), **terms)
    refresh(loan)
    assert cell(servicer, "/loans/", loan.uuid, "Past due") == "No schedule yet"
    owner = servicer.get("/borrowers/export/?all=1").getvalue().decode("utf-8-sig")
    (row,) = csv.DictReader(io.StringIO(owner))
    assert row["Accounts with past due not known"] == ""
    advance(sandbox, 1)
    assert cell(servicer, "/loans/", loan.uuid, "Past due") == "Not known"
    assert Kind(loan.kind) is Kind.LOAN
