"""Tests of collections: the worklist, account owners, contacts, promises and returned payments."""

import csv
import html
import io
import re
import threading
from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection, connections
from django.db.models import Max
from django.http import QueryDict
from django.test import Client as Browser
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from portal.accounts.models import User
from portal.accounts.roles import Role
from portal.audit.models import Entry, PageView
from portal.collections.contacts import contact_form
from portal.collections.list_page import cursor_of, next_account
from portal.collections.models import AccountOwner, Contact, Promise
from portal.collections.promises import newest_promises
from portal.core.business_date import business_date
from portal.gateway import reading
from portal.notes.models import FollowUp
from portal.records.models import Account, Borrower, Kind, PastDueChange, Repayment
from portal.repayments.returns import MAX_DATED
from portal.tables.cells import short_day
from portal.ui import wording
from servicing.business_days import business_day_after, is_business_day
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import browser_of, existing_user, htmx
from tests.portal import pages
from tests.portal.collections.conftest import ACTOR, advance, late_loan, refresh

pytestmark = [pytest.mark.postgres, pytest.mark.django_db]
TOMORROW = (timezone.localdate() + timedelta(days=1)).isoformat()
CONTACT = {"person": "Someone else", "channel": "phone", "outcome": "reached"}


def in_days(days: int) -> date:
    return business_date() + timedelta(days=days)


def log_contact(browser: Browser, record: Account, **typed: Any) -> Any:
    """Log a contact, with the newest one seen. An amount adds a promise, by default for tomorrow."""
    values = CONTACT | {"seen": Contact.objects.aggregate(newest=Max("pk"))["newest"] or 0}
    if "amount" in typed:
        values |= {"outcome": "promised", "day": in_days(1).isoformat()}
    return browser.post(f"/collections/contacts/{record.kind}/{record.uuid}/log/", values | typed)


def post_at_once(senders: Sequence[tuple[Browser, str]], typed: dict[str, str]) -> list[int]:
    """Send the same form from several browsers at once, and return the sorted status codes."""
    start, statuses = threading.Barrier(len(senders)), list[int]()

    def send(browser: Browser, address: str) -> None:
        start.wait()
        statuses.append(browser.post(address, typed).status_code)
        connections.close_all()

    threads = [threading.Thread(target=send, args=sender) for sender in senders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(statuses)


def promise_state(account: Account) -> str:
    return newest_promises([account.uuid])[account.uuid].get_state_display()


def export_rows(browser: Browser, query: str = "") -> list[dict[str, str]]:
    answer = browser.get(f"/collections/export.csv{query}{'&' if query else '?'}all=1")
    return list(csv.DictReader(io.StringIO(answer.getvalue().decode("utf-8-sig"))))


class TestWorklist:
    @pytest.mark.slow
    def test_past_due_accounts_are_listed_worst_first(self, sandbox: Sandbox, servicer: Browser) -> None:
        loan = late_loan(sandbox)
        worse = late_loan(sandbox, amount="2400.00")
        fine = late_loan(sandbox, opened=sandbox.world.clock.today())
        unknown = late_loan(sandbox, opened=sandbox.world.clock.today(), delinquent=True)
        line = given.line(
            sandbox, given.borrower(sandbox), past_due_balance=Decimal("55.50"), days_past_due=12
        )
        refresh(line)
        found = export_rows(servicer)
        assert [row["Account"] for row in found] == [worse.uuid, loan.uuid, line.uuid, unknown.uuid]
        raw = [sandbox.world.account(one.uuid).body for one in (loan, line)]
        due = [row for row in raw[0]["installments"] if row["due_date"] < business_date().isoformat()]
        assert found[1]["Past due"] == f"{sum(Decimal(row['total']) for row in due):.2f}"
        assert (found[2]["Past due"], found[2]["Days past due"]) == ("55.50", "12")
        assert [row["Aging"] for row in found] == ["60–89 days", "60–89 days", "1–29 days", "Not known"]
        shown = pages.visible_text(pages.page(servicer, "/collections/"))
        assert "All 4 $955.50, plus 1 without a figure" in shown
        assert "60–89 days 2 $900.00" in shown
        assert fine.uuid[:8] not in shown
        log_contact(servicer, unknown)
        printed = pages.visible_text(pages.page(servicer, "/collections/print/"))
        assert "All: 4, $955.50, plus 1 without a figure" in printed
        assert f"Loan {unknown.uuid[:8]} Not known Not known" in printed
        assert f"Line {line.uuid[:8]} $55.50 12" in printed
        assert printed.count("1–29 days") == 1
        assert "Reached" in printed
        assert "Last updated" not in printed
        assert re.search(r"False|None|T\d\d:\d\d| ago\b", printed) is None
        assert Entry.objects.filter(action="collections.print").count() == 1

    def test_a_loan_past_due_by_an_unknown_amount_is_listed(
        self, sandbox: Sandbox, servicer: Browser
    ) -> None:
        loan = late_loan(sandbox)
        rest = [one | {"total": None} for one in sandbox.world.account(loan.uuid).body["installments"]]
        sandbox.world.amend(loan.uuid, installments=rest, delinquent=False)
        refresh(loan)
        (row,) = export_rows(servicer)
        assert (row["Account"], row["Past due"], row["Aging"]) == (loan.uuid, "", "60–89 days")

    @pytest.mark.slow
    @pytest.mark.parametrize("kind", ["loan", "line"])
    def test_an_open_account_that_says_nothing_of_past_due_is_counted_as_not_known(
        self, sandbox: Sandbox, servicer: Browser, kind: str
    ) -> None:
        owner = given.borrower(sandbox)
        account = late_loan(sandbox, owner) if kind == "loan" else given.line(sandbox, owner)
        unknown = (
            {
                "installments": [{"due_date": None, "total": "100.00", "status": "SCHEDULED"}],
                "delinquent": False,
            }
            if kind == "loan"
            else {"past_due_balance": None, "days_past_due": None}
        )
        sandbox.world.amend(account.uuid, **unknown)
        refresh(account)
        never_read = given.loan(sandbox, owner)
        page = pages.page(servicer, "/collections/")
        assert re.findall('id="without-figure"[^>]*>([^<]*)<', page) == ["1 account without a figure"]
        rows = pages.page(servicer, "/collections/?not_known=yes").split("<tr data-row>")[1:]
        assert [account.uuid in row for row in rows] == [True]
        assert never_read.uuid not in "".join(rows)
        home = pages.visible_text(pages.page(servicer, "/"))
        assert "Past due not known 1" in home
        assert f"{kind} {account.uuid[:8]}" in home.casefold()
        sandbox.world.amend(
            account.uuid, **({"status": "CLOSED"} if kind == "loan" else {"past_due_balance": 0})
        )
        refresh(account)
        assert 'id="without-figure"' not in pages.page(servicer, "/collections/")

    def test_refresh_without_a_selection_asks_for_accounts(self, sandbox: Sandbox, servicer: Browser) -> None:
        shown = pages.visible_text(servicer.post("/collections/refresh/").content.decode())
        assert "Refresh accounts" in shown
        assert "accounts to refresh." in shown

    @pytest.mark.slow
    def test_days_past_due_of_a_line_show_the_date_of_its_copy(
        self, sandbox: Sandbox, servicer: Browser
    ) -> None:
        line = given.line(
            sandbox, given.borrower(sandbox), past_due_balance=Decimal("55.50"), days_past_due=12
        )
        refresh(line)
        assert "as of" not in pages.visible_text(pages.page(servicer, "/collections/"))
        advance(sandbox, 2)
        shown = pages.visible_text(pages.page(servicer, "/collections/"))
        assert f"$55.50 12 days as of {short_day(in_days(-2))} 12" in shown

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("query", "number"),
        [
            ("aging=days_60_89", 1), ("aging=days_1_29", 1), ("kind=line", 1), ("owner=none", 2), ("owner=x", 2),
            ("owner=99999999999999999999", 2), ("change=new", 0), ("promise=due", 0), ("quiet=7", 2), ("q=%00", 2),
            ("change=evil&aging=evil", 2),
        ],
    )  # fmt: skip
    def test_filters_narrow_the_worklist(
        self, sandbox: Sandbox, servicer: Browser, query: str, number: int
    ) -> None:
        late_loan(sandbox)
        line = given.line(
            sandbox, given.borrower(sandbox), past_due_balance=Decimal("55.50"), days_past_due=12
        )
        refresh(line)
        assert len(export_rows(servicer, f"?{query}")) == number

    @pytest.mark.parametrize(
        ("query", "phrase"),
        [
            ("change=new", "Newly past due this week"),
            ("promise=kept", "Promise kept"),
            ("quiet=7", "No contact in 7 days"),
        ],
    )
    def test_a_choice_reads_the_same_in_its_control_and_as_a_chip(
        self, sandbox: Sandbox, servicer: Browser, query: str, phrase: str
    ) -> None:
        late_loan(sandbox)
        shown = pages.page(servicer, f"/collections/?{query}")
        assert f" selected>{phrase}</option>" in shown
        assert re.search(rf'sd-chip-here">\s*{phrase}\s*<a', shown)

    @pytest.mark.slow
    def test_newly_past_due_and_cured_accounts_are_marked(self, sandbox: Sandbox, servicer: Browser) -> None:
        today = sandbox.world.clock.today()
        paid, falls_due = late_loan(sandbox), late_loan(sandbox, opened=today - timedelta(days=25))
        assert not PastDueChange.objects.exists()
        advance(sandbox, 10)
        assert export_rows(servicer, "?change=new") == []
        rows = sandbox.world.account(falls_due.uuid).body["installments"]
        unpaid = [one | {"status": "SCHEDULED", "paid_on": None} for one in rows]
        sandbox.world.amend(falls_due.uuid, installments=unpaid)
        refresh(falls_due)
        page = pages.visible_text(pages.page(servicer, "/collections/"))
        assert "Newly past due" in page
        assert [row["Account"] for row in export_rows(servicer, "?change=new")] == [falls_due.uuid]
        body = sandbox.world.account(paid.uuid).body
        sandbox.world.amend(
            paid.uuid,
            delinquent=False,
            installments=[one | {"status": "PAID"} for one in body["installments"]],
        )
        refresh(paid)
        assert [row["Account"] for row in export_rows(servicer, "?change=cured")] == [paid.uuid]
        assert "Cured" in pages.visible_text(pages.page(servicer, "/collections/?change=cured"))
        assert paid.uuid not in {row["Account"] for row in export_rows(servicer)}
        advance(sandbox, 8)
        assert export_rows(servicer, "?change=cured") == []

    def test_cured_filter_without_matches_says_nothing_matches(
        self, sandbox: Sandbox, servicer: Browser
    ) -> None:
        late_loan(sandbox)
        shown = pages.visible_text(pages.page(servicer, "/collections/?change=cured"))
        assert "Nothing matches The filters hide 1 account." in shown
        assert "Nothing is past due" not in shown

    def test_the_chosen_tab_stays_if_nothing_matches(self, sandbox: Sandbox, servicer: Browser) -> None:
        late_loan(sandbox)
        page = pages.page(servicer, "/collections/?aging=days_90&q=zzzz")
        (tabs,) = re.findall(r'<nav class="sd-tabs" aria-label="Aging".*?</nav>', page, re.S)
        assert pages.visible_text(tabs) == "All 0 90+ days 0"
        assert 'aria-current="page"' in tabs
        assert "Search by borrower" in page

    @pytest.mark.slow
    def test_next_account_walks_the_worklist_to_its_end(self, sandbox: Sandbox, servicer: Browser) -> None:
        loans = [late_loan(sandbox) for _ in range(3)]
        address, walked = "/collections/next/?kind=loan", []
        for _ in loans:
            answer = servicer.get(address)
            walked.append(re.search(r"/loans/([^/]+)/", answer["Location"])[1])  # type: ignore[index]
            page = pages.page(servicer, answer["Location"])
            address = html.unescape(re.search(r'href="([^"]*)" data-key="x"', page)[1])  # type: ignore[index]
        assert walked == [one.uuid for one in reversed(loans)]
        end = servicer.get(address)
        assert end["Location"] == "/collections/?kind=loan"
        for broken in ("?at=evil", "?at=1e99~1", "?at=~", f"?at={'9' * 50}~{'9' * 50}", "?at=NaN~1"):
            assert servicer.get(f"/collections/next/{broken}").status_code == 302

    @pytest.mark.slow
    def test_next_account_continues_after_an_account_is_cured(
        self, sandbox: Sandbox, servicer: Browser
    ) -> None:
        first, second, _ = sorted((late_loan(sandbox) for _ in range(3)), key=lambda one: -one.pk)
        state = QueryDict(f"at={cursor_of(first)}")
        Account.objects.filter(pk=first.pk).update(past_due=0, past_due_rank=None, is_past_due=False)
        assert next_account(state) == second

    @pytest.mark.slow
    def test_last_contact_includes_contacts_with_the_borrower(
        self, sandbox: Sandbox, servicer: Browser
    ) -> None:
        owner, other = given.borrower(sandbox), given.borrower(sandbox)
        loans = [late_loan(sandbox, owner), late_loan(sandbox, owner), late_loan(sandbox, other)]
        log_contact(servicer, owner, outcome="hardship")
        shown = {row["Account"]: row["Last contact"] for row in export_rows(servicer)}
        assert [bool(shown[one.uuid]) for one in loans] == [True, True, False]
        assert [row["Account"] for row in export_rows(servicer, "?quiet=7")] == [loans[2].uuid]
        log_contact(servicer, loans[1], outcome="left_message")
        page = pages.visible_text(pages.page(servicer, "/collections/"))
        assert page.count("Hardship") == page.count("Left message") == 1

    @pytest.mark.slow
    def test_a_changed_account_is_marked_once(self, sandbox: Sandbox, servicer: Browser) -> None:
        loan = late_loan(sandbox)
        pages.page(servicer, loan.get_absolute_url())
        sandbox.world.amend(loan.uuid, delinquent=False)
        refresh(loan)
        assert (
            pages.visible_text(pages.page(servicer, "/collections/")).count("Changed since you looked") == 1
        )

    def test_next_pending_and_last_paid_payments_are_shown(self, sandbox: Sandbox, servicer: Browser) -> None:
        loan = late_loan(sandbox, autopay_enabled=False)
        for amount, status, days in (
            ("10", "SUCCEEDED", -40), ("20", "SUCCEEDED", -20), ("30", "FAILED", -10), ("40", "SCHEDULED", -5),
            ("50", "SCHEDULED", 5), ("60", "SCHEDULED", 9),
        ):  # fmt: skip
            sandbox.world.repayment(loan.uuid, amount=amount, status=status, effective_date=in_days(days))
        refresh(loan)
        (row,) = export_rows(servicer)
        pending = (row["Pending payment"], row["Pending amount"])
        assert pending == (in_days(5).isoformat(), "50.00")
        assert (row["Last payment"], row["Last payment amount"]) == (in_days(-20).isoformat(), "20.00")
        assert "Autopay off" in pages.visible_text(pages.page(servicer, "/collections/"))

    @pytest.mark.parametrize(("days", "is_pending"), [(-1, False), (0, True), (1, True)])
    def test_a_payment_scheduled_for_today_is_pending(
        self, sandbox: Sandbox, servicer: Browser, days: int, is_pending: bool
    ) -> None:
        loan = late_loan(sandbox)
        day = in_days(days)
        sandbox.world.repayment(loan.uuid, amount="40", status="SCHEDULED", effective_date=day)
        refresh(loan)
        (row,) = export_rows(servicer)
        expected = (day.isoformat(), "40.00") if is_pending else ("", "")
        assert (row["Pending payment"], row["Pending amount"]) == expected

    def test_next_account_is_found_without_counting_rows(self, sandbox: Sandbox) -> None:
        loan = late_loan(sandbox)
        with CaptureQueriesContext(connection) as queries:
            assert next_account(QueryDict("aging=days_60_89&at=99999~1")) == loan
        # The business date may be read from a cache in the database.
        found = [one["sql"] for one in queries if "registry_record" in one["sql"]]
        assert (len(found), any("COUNT(" in one for one in found)) == (2, False)


class TestOwners:
    @pytest.mark.slow
    def test_servicers_take_accounts_and_supervisors_assign_them(
        self, sandbox: Sandbox, servicer: Browser
    ) -> None:
        loans = [late_loan(sandbox) for _ in range(5)]
        supervisor, me = browser_of(Role.SUPERVISOR), User.objects.get(username="servicer")
        uuids = [one.uuid for one in loans]
        answer = servicer.post("/collections/take/", {"uuid": uuids[:2], "back": "?kind=loan"})
        assert answer["Location"] == "/collections/?kind=loan"
        assert [row["Account"] for row in export_rows(servicer, f"?owner={me.pk}")] == uuids[1::-1]
        assert servicer.post("/collections/assign/", {"uuid": uuids, "owner": me.pk}).status_code == 403
        boss = User.objects.get(username="supervisor")
        supervisor.post("/collections/assign/", {"uuid": uuids, "owner": boss.pk})
        assert AccountOwner.objects.filter(owner=boss).count() == 5
        servicer.post("/collections/take/", {"uuid": uuids})  # They already have another owner.
        assert AccountOwner.objects.filter(owner=boss).count() == 5
        changes = Entry.objects.filter(action="collections.assign")
        assert changes.count() == 7
        assert changes.latest("id").changes["owner"] == ["", boss.audit_name()]
        supervisor.post("/collections/assign/", {"uuid": uuids[:1], "owner": "nobody"})
        assert [row["Account"] for row in export_rows(servicer, "?owner=none")] == uuids[:1]
        supervisor.post("/collections/take/", {"uuid": uuids[1:2], "release": "1"})
        assert AccountOwner.objects.count() == 3

    def test_invalid_assignments_are_rejected(self, sandbox: Sandbox) -> None:
        loan, supervisor = late_loan(sandbox), browser_of(Role.SUPERVISOR)
        inactive = existing_user("left", role=Role.SERVICER, is_active=False)
        viewer = existing_user("viewer", role=Role.VIEWER)
        for owner in (inactive.pk, viewer.pk, "x", 10**30):
            rejected = supervisor.post("/collections/assign/", {"uuid": [loan.uuid], "owner": owner})
            assert rejected.status_code == 422
            assert "Choose a colleague who works here." in pages.visible_text(rejected.content.decode())
        rejected = supervisor.post("/collections/assign/", {"uuid": [], "owner": "nobody"})
        assert rejected.status_code == 422
        shown = pages.visible_text(rejected.content.decode())
        assert ("Select accounts first." in shown, "Choose a colleague" in shown) == (True, False)
        assert not AccountOwner.objects.exists()
        typed = {"title": "Call", "due": in_days(1).isoformat(), "owner": inactive.pk}
        assert supervisor.post(f"/notes/follow-ups/new/{loan.borrower_uuid}/", typed).status_code == 422

    def test_accounts_of_an_inactive_owner_are_unassigned(self, sandbox: Sandbox, servicer: Browser) -> None:
        loan = late_loan(sandbox)
        inactive = existing_user("left", role=Role.SERVICER, is_active=False)
        AccountOwner.objects.create(account_uuid=loan.uuid, owner=inactive)
        assert len(export_rows(servicer, "?owner=none")) == 1
        servicer.post("/collections/take/", {"uuid": [loan.uuid], "one": "1"})
        assert AccountOwner.objects.get().owner.username == "servicer"

    def test_an_account_is_taken_and_released_in_its_panel(self, sandbox: Sandbox, servicer: Browser) -> None:
        loan = late_loan(sandbox)
        for typed, number in (({}, 1), ({"release": "1"}, 0)):
            typed |= {"uuid": loan.uuid, "one": "1"}
            answer = servicer.post("/collections/take/", typed, headers=htmx("contacts"))
            assert (answer.status_code, "collections:taken" in answer["HX-Trigger"]) == (204, True)
            assert AccountOwner.objects.count() == number
        answer = servicer.post("/collections/take/", {"back": "?kind=loan"}, follow=True)
        assert "Select accounts first." in pages.visible_text(answer.content.decode())

    def test_a_follow_up_is_assigned_to_a_colleague(self, sandbox: Sandbox, servicer: Browser) -> None:
        loan, colleague = late_loan(sandbox), existing_user("colleague", role=Role.SERVICER)
        typed = {
            "next_action": "Call the owner",
            "next_on": in_days(2).isoformat(),
            "colleague": colleague.pk,
        }
        log_contact(servicer, loan, **typed)
        follow_up = FollowUp.objects.get()
        assert (follow_up.owner_id, follow_up.title) == (colleague.pk, "Call the owner")
        assert Entry.objects.get(action="notes.add_follow_up").detail == {"for": colleague.audit_name()}


def test_invalid_ids_are_not_taken(sandbox: Sandbox, servicer: Browser) -> None:
    loan = late_loan(sandbox)
    assert servicer.post("/collections/take/", {"uuid": ["\0", "x" * 65, loan.uuid]}).status_code == 303
    assert AccountOwner.objects.get().account_uuid == loan.uuid


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_simultaneous_contacts_and_takes_are_saved_once(sandbox: Sandbox, servicer: Browser) -> None:
    loan, colleague = late_loan(sandbox), browser_of(Role.SUPERVISOR)
    log, take = "/collections/contacts/{}/{}/log/", "/collections/take/"
    of_loan, of_borrower = log.format("loan", loan.uuid), log.format("borrower", loan.borrower_uuid)
    first = CONTACT | {"seen": "0"}
    assert post_at_once([(servicer, of_loan), (colleague, of_borrower)], first) == [303, 422]
    assert post_at_once([(servicer, take), (colleague, take)], {"uuid": loan.uuid}) == [303, 303]
    assert Contact.objects.count() == 1
    assert Entry.objects.filter(action="collections.assign").count() == 1


class TestContacts:
    @pytest.mark.slow
    def test_a_contact_is_logged_on_the_page_and_in_a_panel(
        self, sandbox: Sandbox, servicer: Browser
    ) -> None:
        owner = given.borrower(
            sandbox, key_people=[{"first_name": "Ada", "last_name": "Kim", "phone": "5415550142"}]
        )
        loan = late_loan(sandbox, owner)
        address = f"/collections/contacts/loan/{loan.uuid}/"
        form = pages.plain(servicer, address)
        person = re.search(r'<option value="(Ada Kim[^"]*)"', form)[1]  # type: ignore[index]
        assert "(541) 555-0142" in person
        assert '<b class="sd-nowrap">(541) 555-0142</b>' in form
        assert log_contact(servicer, loan, person=person, note="Will call <b>back</b>")["Location"] == address
        for where in (address, f"/collections/contacts/borrower/{owner.uuid}/"):
            shown = pages.plain(servicer, where)
            assert "Will call &lt;b&gt;back&lt;/b&gt;" in shown
            assert "Reached" in shown
        assert address in pages.page(servicer, loan.get_absolute_url())
        assert "/collections/contacts/borrower/" in pages.page(
            servicer, f"{owner.get_absolute_url()}?tab=notes"
        )
        assert "Reached" in pages.visible_text(pages.page(servicer, "/collections/"))
        answer = servicer.post(f"{address}log/", {}, headers=htmx("contacts"))
        assert answer.status_code == 422
        assert answer.content.decode().strip().startswith('<section class="sd-card" id="contacts"')
        sent = {"person": "Someone else", "channel": "email", "outcome": "hardship"}
        newest = Contact.objects.get().pk
        answer = servicer.post(f"{address}log/", sent | {"seen": newest}, headers=htmx("contacts"))
        assert (answer.status_code, "collections:logged" in answer["HX-Trigger"]) == (204, True)
        assert Entry.objects.filter(action="collections.log", subject_uuid=loan.uuid).count() == 2
        assert PageView.objects.filter(page="collections.view", subject_uuid=loan.uuid).count() == 1

    def test_the_promise_begins_with_what_is_past_due(self, sandbox: Sandbox, servicer: Browser) -> None:
        loan = late_loan(sandbox)
        form = pages.plain(servicer, f"/collections/contacts/loan/{loan.uuid}/")
        promise = form.partition("sd-promise-fields")[2].partition("<fieldset")[0]
        amount = re.search(r'name="amount" value="([^"]+)"', promise)
        assert amount
        assert Decimal(amount[1].replace(",", "")) == loan.past_due
        assert (
            log_contact(servicer, loan, outcome="left_message", amount=amount[1], day="").status_code == 303
        )
        assert not Promise.objects.exists()

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("typed", "reason"),
        [
            ({"note": "His SSN is 517-28-4039"}, "SSN"),
            ({"next_action": "Ask for EIN 84-0917263", "next_on": "2030-01-01"}, "EIN"),
            ({"amount": "0"}, "greater than zero"),
            ({"amount": "-5"}, "greater than zero"),
            ({"amount": "much"}, "Enter an amount"),
            ({"amount": "1.005"}, "two decimal places"),
            ({"amount": "10", "day": "2020-01-01"}, "Choose today or later"),
            ({"amount": "10", "day": "2999-01-01"}, "within a year"),
            ({"amount": "10", "day": "9999-12-31"}, "within a year"),
            ({"amount": "10", "day": ""}, "Choose the promised day"),
            ({"amount": "10", "outcome": "reached"}, "Choose “Promised to pay”"),
            ({"outcome": "promised"}, "Enter the promised amount"),
            ({"outcome": "evil"}, "Choose an option"),
            ({"person": "Nobody on file"}, "Choose an option"),
            ({"next_action": "Call"}, "Choose a day"),
            ({"next_action": "Call", "next_on": "9999-12-31"}, "within a year"),
            ({"next_on": TOMORROW}, "Enter the next action"),
        ],
    )
    def test_invalid_contacts_are_rejected_with_a_reason(
        self, sandbox: Sandbox, servicer: Browser, typed: dict[str, str], reason: str
    ) -> None:
        answer = log_contact(servicer, late_loan(sandbox), **typed)
        assert answer.status_code == 422
        assert reason in pages.visible_text(answer.content.decode())
        assert not Contact.objects.exists()

    def test_a_promise_above_the_amount_owed_needs_confirmation(
        self, sandbox: Sandbox, servicer: Browser
    ) -> None:
        loan = late_loan(sandbox)
        answer = log_contact(servicer, loan, amount="1200.01")
        assert "More than the $1,200.00 owed. Log it anyway?" in pages.visible_text(answer.content.decode())
        assert log_contact(servicer, loan, amount="1200.01", confirmed_amount="1200.01").status_code == 303
        assert Promise.objects.get().amount == Decimal("1200.01")

    def test_a_promise_on_an_unknown_balance_needs_no_confirmation(
        self, sandbox: Sandbox, servicer: Browser
    ) -> None:
        loan = late_loan(sandbox, delinquent=True)
        sandbox.world.amend(loan.uuid, installments=None)
        refresh(loan)
        assert (loan.past_due, loan.remaining) == (None, None)
        assert log_contact(servicer, loan, amount="9999999.99").status_code == 303

    def test_a_follow_up_needs_a_borrower_on_file(self, sandbox: Sandbox, servicer: Browser) -> None:
        loan = late_loan(sandbox)
        Borrower.objects.all().delete()
        typed = {"next_action": "Call", "next_on": in_days(1).isoformat()}
        answer = log_contact(servicer, loan, **typed)
        assert "Add the borrower first." in pages.visible_text(answer.content.decode())
        assert not Contact.objects.exists()
        assert log_contact(servicer, loan).status_code == 303

    @pytest.mark.slow
    def test_contacts_follow_an_account_to_its_confirmed_borrower(
        self, sandbox: Sandbox, servicer: Browser
    ) -> None:
        loan, owner = late_loan(sandbox), Borrower.objects.get()
        other = late_loan(sandbox, given.borrower(sandbox))
        Account.objects.filter(pk=loan.pk).update(borrower_uuid="")
        loan.refresh_from_db()
        assert log_contact(servicer, loan, note="Asked for the account number").status_code == 303
        Account.objects.filter(pk=loan.pk).update(borrower_uuid=owner.uuid)
        for record, number in ((loan, 1), (owner, 1), (other, 0)):
            shown = pages.plain(servicer, f"/collections/contacts/{record.kind}/{record.uuid}/")
            assert (record.kind, shown.count("Asked for the account number")) == (record.kind, number)

    def test_an_account_form_queries_no_other_accounts(self, sandbox: Sandbox, servicer: Browser) -> None:
        loan, other = late_loan(sandbox), late_loan(sandbox)
        Account.objects.filter(kind=Kind.LOAN).update(borrower_uuid="")
        loan.refresh_from_db()
        with CaptureQueriesContext(connection) as queries:
            assert contact_form(loan).accounts == {}
        assert not any(
            other.uuid in one["sql"] or "past_due_rank" in one["sql"].partition(" WHERE ")[2]
            for one in queries
        )

    def test_the_page_names_the_account_and_its_borrower(self, sandbox: Sandbox, servicer: Browser) -> None:
        loan = late_loan(sandbox)
        shown = pages.visible_text(pages.plain(servicer, f"/collections/contacts/loan/{loan.uuid}/"))
        name = Borrower.objects.get().label
        assert f"Loan {loan.uuid[:8]} Contacts Loan {loan.uuid[:8]} {name}" in shown
        assert loan.uuid not in shown

    def test_a_colleagues_new_contact_needs_confirmation(self, sandbox: Sandbox, servicer: Browser) -> None:
        loan, colleague = late_loan(sandbox), browser_of(Role.SUPERVISOR)
        assert log_contact(colleague, loan, amount="50", seen="0").status_code == 303
        answer = log_contact(servicer, loan, amount="50", seen="0")
        shown = pages.visible_text(answer.content.decode())
        assert "logged “Promised to pay”" in shown
        assert "Log this one too?" in shown
        assert log_contact(servicer, loan, amount="50").status_code == 303
        assert Promise.objects.count() == 2

    @pytest.mark.slow
    def test_each_warning_needs_its_own_confirmation(self, sandbox: Sandbox, servicer: Browser) -> None:
        loan, colleague = late_loan(sandbox), browser_of(Role.SUPERVISOR)
        assert log_contact(colleague, loan, seen="0").status_code == 303
        answers, labels = {"seen": "0"}, ("Yes, log it", "Yes, log this one too")
        for name, number in (("confirmed_amount", 2), ("seen", 1)):
            answer = log_contact(servicer, loan, amount="1200.01", **answers)
            page = answer.content.decode()
            assert sum(words in page for words in labels) == number
            assert all(f'name="{one}" value="{value}"' in page for one, value in answers.items())
            answers[name] = re.findall(rf'type="checkbox" name="{name}" value="([^"]+)"', page)[0]
        answer = log_contact(servicer, loan, **answers | {"amount": "1200.02"})
        assert "Log it anyway?" in pages.visible_text(answer.content.decode())
        assert log_contact(servicer, loan, amount="1200.01", **answers).status_code == 303

    @pytest.mark.slow
    def test_a_promise_needs_an_active_account(self, sandbox: Sandbox, servicer: Browser) -> None:
        loan = late_loan(sandbox)
        owner = Borrower.objects.get()
        answer = log_contact(servicer, owner, amount="10")
        assert "Choose the account." in pages.visible_text(answer.content.decode())
        assert log_contact(servicer, owner, amount="10", account=loan.uuid).status_code == 303
        assert Promise.objects.get().account_uuid == loan.uuid
        browser_of(Role.SUPERVISOR).post(
            f"/registry/loan/{loan.uuid}/archive/", {"act": "archive", "reason": "Sold"}
        )
        answer = log_contact(servicer, loan, amount="10")
        shown = pages.visible_text(answer.content.decode())
        assert ("This account is archived." in shown, "Take account" in shown) == (True, False)

    def test_a_viewer_can_read_but_not_change_contacts(self, sandbox: Sandbox, servicer: Browser) -> None:
        loan, viewer = late_loan(sandbox), browser_of(Role.VIEWER)
        log_contact(servicer, loan, amount="50")
        assert "Promised to pay" in pages.plain(viewer, f"/collections/contacts/loan/{loan.uuid}/")
        promise = Promise.objects.get()
        for address in (
            "take/",
            "assign/",
            f"contacts/loan/{loan.uuid}/log/",
            f"promises/{promise.pk}/withdraw/",
        ):
            assert viewer.post(f"/collections/{address}", {"reason": "x"}).status_code == 403


class TestPromises:
    @pytest.mark.slow
    def test_a_payment_keeps_a_promise_and_its_return_reopens_it(
        self, sandbox: Sandbox, servicer: Browser
    ) -> None:
        loan = late_loan(sandbox)
        log_contact(servicer, loan, amount="300")
        assert promise_state(loan) == "Open"
        payment = sandbox.world.repayment(
            loan.uuid, amount="300", status="SCHEDULED", effective_date=in_days(1)
        )["uuid"]
        refresh(loan)
        assert promise_state(loan) == "Payment pending"
        advance(sandbox, 1)
        sandbox.world.account(loan.uuid)
        refresh(loan)
        assert promise_state(loan) == "Kept"
        shown = pages.plain(servicer, f"/collections/contacts/loan/{loan.uuid}/")
        assert f'href="/repayments/{payment}/"' in shown
        assert "paid $300.00 of $300.00" in shown
        sandbox.world.bounce_payment(payment)
        refresh(loan)
        assert promise_state(loan) == "Open"
        advance(sandbox, 6)
        assert promise_state(loan) == "Awaiting update"
        refresh(loan)
        assert promise_state(loan) == "Broken"
        shown = pages.visible_text(pages.plain(servicer, f"/collections/contacts/loan/{loan.uuid}/"))
        assert "paid $0.00 of $300.00" in shown
        assert "$300.00 returned" in shown

    def test_a_payment_dropped_by_the_service_is_not_pending(
        self, sandbox: Sandbox, servicer: Browser
    ) -> None:
        loan = late_loan(sandbox)
        log_contact(servicer, loan, amount="300")
        payment = sandbox.world.repayment(
            loan.uuid, amount="300", status="SCHEDULED", effective_date=in_days(1)
        )
        refresh(loan)
        assert promise_state(loan) == "Payment pending"
        assert export_rows(servicer)[0]["Pending payment"] == in_days(1).isoformat()
        sandbox.world.store.remove(payment["uuid"])
        refresh(loan)
        assert promise_state(loan) == "Open"
        assert export_rows(servicer)[0]["Pending payment"] == ""

    @pytest.mark.slow
    def test_a_payment_of_unknown_amount_does_not_keep_a_promise(
        self, sandbox: Sandbox, servicer: Browser
    ) -> None:
        loan = late_loan(sandbox)
        log_contact(servicer, loan, amount="300")
        paid = sandbox.world.repayment(loan.uuid, amount="300", status="SUCCEEDED", effective_date=in_days(1))
        sandbox.world.amend(paid["uuid"], amount=None)
        refresh(loan)
        assert promise_state(loan) == "Not known"
        sandbox.world.amend(paid["uuid"], status="FAILED_AFTER_SUCCESS")
        refresh(loan)
        shown = pages.visible_text(pages.plain(servicer, f"/collections/contacts/loan/{loan.uuid}/"))
        assert "An unknown amount returned" in shown
        assert "None" not in shown.partition("Contacts and promises")[2].partition("Log contact")[0]

    @pytest.mark.slow
    def test_an_outage_does_not_break_a_promise(self, sandbox: Sandbox, servicer: Browser) -> None:
        loan = late_loan(sandbox)
        log_contact(servicer, loan, amount="300")
        advance(sandbox, 6)
        sandbox.fail_next("repayments.of_loan", status=503, times=9)
        assert not reading.read_live(ACTOR, reading.account_copies(loan)[1])
        assert promise_state(loan) == "Awaiting update"
        assert "Awaiting update" in pages.visible_text(pages.page(servicer, "/collections/?promise=open"))

    @pytest.mark.slow
    @pytest.mark.parametrize("about", ["account", "borrower"])
    def test_a_promise_broken_during_an_outage_stays_on_home_until_somebody_acts(
        self, sandbox: Sandbox, servicer: Browser, about: str
    ) -> None:
        loan = late_loan(sandbox)
        log_contact(servicer, loan, amount="300")
        sandbox.fail_next("repayments.of_loan", status=503, times=9)
        advance(sandbox, 14)
        assert not reading.read_live(ACTOR, reading.account_copies(loan)[1])
        assert "Broken promises" not in pages.visible_text(pages.page(servicer, "/"))
        sandbox.heal()
        refresh(loan)
        assert "Broken promises 1" in pages.visible_text(pages.page(servicer, "/"))
        assert [row["Account"] for row in export_rows(servicer, "?promise=new")] == [loan.uuid]
        advance(sandbox, 5)
        refresh(loan)
        assert "Broken promises 1" in pages.visible_text(pages.page(servicer, "/"))
        assert export_rows(servicer, "?promise=new") == []
        assert [row["Account"] for row in export_rows(servicer, "?promise=unanswered")] == [loan.uuid]
        subject = loan if about == "account" else Borrower.objects.get(uuid=loan.borrower_uuid)
        log_contact(servicer, subject)
        assert "Broken promises" not in pages.visible_text(pages.page(servicer, "/"))
        assert export_rows(servicer, "?promise=unanswered") == []
        assert [row["Account"] for row in export_rows(servicer, "?promise=broken")] == [loan.uuid]

    @pytest.mark.slow
    def test_on_monday_a_promise_broken_on_friday_is_new(self, sandbox: Sandbox, servicer: Browser) -> None:
        loan = late_loan(sandbox)
        log_contact(servicer, loan, amount="300")
        # A Friday after the deadline, with a usual weekend.
        friday = next(
            day
            for day in (in_days(number) for number in range(10, 60))
            if day.weekday() == 4 and all(is_business_day(day + timedelta(days)) for days in (0, 3))
        )
        advance(sandbox, (friday - business_date()).days)
        refresh(loan)
        for days, expected in ((0, [loan.uuid]), (3, [loan.uuid]), (1, [])):
            advance(sandbox, days)
            assert [row["Account"] for row in export_rows(servicer, "?promise=new")] == expected

    @pytest.mark.slow
    @pytest.mark.parametrize("status", ["IN_REVIEW", ""])
    def test_a_payment_of_an_unknown_status_makes_a_promise_not_known(
        self, sandbox: Sandbox, servicer: Browser, status: str
    ) -> None:
        loan = late_loan(sandbox)
        log_contact(servicer, loan, amount="300")
        sandbox.world.repayment(loan.uuid, amount="300", status=status, effective_date=in_days(1))
        refresh(loan)
        assert promise_state(loan) == "Not known"
        contacts = pages.visible_text(pages.plain(servicer, f"/collections/contacts/loan/{loan.uuid}/"))
        assert "$300.00 with an unknown status" in contacts
        (row,) = export_rows(servicer, "?promise=open")
        assert row["Promise"] == "Not known"

    @pytest.mark.slow
    def test_home_count_of_due_promises_matches_the_worklist(
        self, sandbox: Sandbox, servicer: Browser
    ) -> None:
        """Both include accounts that aren't past due and leave out archived ones."""
        late, current, archived = (
            late_loan(sandbox),
            late_loan(sandbox, opened=in_days(0)),
            late_loan(sandbox),
        )
        for loan in (late, current, archived):
            log_contact(servicer, loan, amount="10", day=in_days(0).isoformat())
        browser_of(Role.SUPERVISOR).post(
            f"/registry/loan/{archived.uuid}/archive/", {"act": "archive", "reason": "Sold"}
        )
        assert "Promises due today 2" in pages.visible_text(pages.page(servicer, "/"))
        for sort, expected in (("past_due", [late, current]), ("-past_due", [late, current])):
            found = export_rows(servicer, f"?promise=due&sort={sort}")
            assert [row["Account"] for row in found] == [one.uuid for one in expected]
            state = QueryDict(f"promise=due&sort={sort}&at={cursor_of(late)}")
            assert next_account(state) == current
        assert next_account(QueryDict(f"promise=due&at={cursor_of(current)}")) is None

    @pytest.mark.slow
    def test_home_shows_due_and_broken_promises(self, sandbox: Sandbox, servicer: Browser) -> None:
        due, broken = late_loan(sandbox), late_loan(sandbox)
        log_contact(servicer, broken, amount="250")
        advance(sandbox, (business_day_after(in_days(1), 1) - business_date()).days + 1)
        refresh(broken)
        log_contact(servicer, due, amount="150", day=business_date().isoformat())
        shown = pages.visible_text(pages.page(servicer, "/"))
        assert "$150.00" in shown
        assert "Promises due today 1" in shown
        assert "Broken promises 1" in shown
        assert [row["Account"] for row in export_rows(servicer, "?promise=due")] == [due.uuid]
        assert [row["Account"] for row in export_rows(servicer, "?promise=broken")] == [broken.uuid]

    @pytest.mark.slow
    def test_a_late_return_breaks_a_kept_promise(self, sandbox: Sandbox, servicer: Browser) -> None:
        loan = late_loan(sandbox)
        log_contact(servicer, loan, amount="300")
        paid = sandbox.world.repayment(loan.uuid, amount="300", status="SCHEDULED", effective_date=in_days(1))
        advance(sandbox, 40)
        sandbox.world.account(loan.uuid)
        refresh(loan)
        assert promise_state(loan) == "Kept"
        # The filter lists only recent promises.
        assert [row["Account"] for row in export_rows(servicer, "?promise=kept")] == []
        assert "Broken promises" not in pages.visible_text(pages.page(servicer, "/"))
        sandbox.world.bounce_payment(paid["uuid"])
        refresh(loan)
        assert promise_state(loan) == "Broken"
        assert "Broken promises 1" in pages.visible_text(pages.page(servicer, "/"))
        assert [row["Account"] for row in export_rows(servicer, "?promise=broken")] == [loan.uuid]

    @pytest.mark.slow
    def test_one_payment_keeps_only_the_first_of_two_promises(
        self, sandbox: Sandbox, servicer: Browser
    ) -> None:
        loan = late_loan(sandbox)
        for _ in range(2):
            log_contact(servicer, loan, amount="300")
        sandbox.world.repayment(loan.uuid, amount="300", status="SCHEDULED", effective_date=in_days(1))
        advance(sandbox, 7)
        sandbox.world.account(loan.uuid)
        refresh(loan)
        assert [one.get_state_display() for one in Promise.objects.all()] == ["Kept", "Broken"]

    @pytest.mark.slow
    def test_a_promise_is_withdrawn_once_with_a_reason(self, sandbox: Sandbox, servicer: Browser) -> None:
        loan = late_loan(sandbox)
        log_contact(servicer, loan, amount="300")
        address = f"/collections/promises/{Promise.objects.get().pk}/withdraw/"
        assert servicer.post(address, {"reason": ""}).status_code == 422
        for message in ("Promise withdrawn.", "This promise was already withdrawn."):
            answer = servicer.post(address, {"reason": "Logged on the wrong loan"}, follow=True)
            assert message in pages.visible_text(answer.content.decode())
        assert Entry.objects.filter(action="collections.withdraw").count() == 1
        shown = pages.visible_text(pages.plain(servicer, f"/collections/contacts/loan/{loan.uuid}/"))
        assert "Withdrawn by Servicer (servicer): Logged on the wrong loan" in shown

    def test_a_contact_of_today_is_undone_by_its_author(
        self, sandbox: Sandbox, servicer: Browser, supervisor: Browser
    ) -> None:
        loan = late_loan(sandbox)
        sandbox.world.repayment(loan.uuid, amount="300", status="SCHEDULED", effective_date=in_days(1))
        refresh(loan)
        for amount in ("300", "200"):
            log_contact(servicer, loan, amount=amount)
        wrong, right = Promise.objects.all()
        assert [one.state for one in (wrong, right)] == ["PENDING", "OPEN"]
        address = f"/collections/contact/{wrong.contact_id}/undo/"
        for browser, number in ((supervisor, 2), (servicer, 1)):
            browser.post(address)
            assert Contact.objects.count() == number
        assert Entry.objects.filter(action="collections.undo").count() == 1
        right.refresh_from_db()
        assert right.state == "PENDING"
        advance(sandbox, 1)
        servicer.post(f"/collections/contact/{right.contact_id}/undo/")
        assert Contact.objects.count() == 1

    def test_a_changed_grace_decides_promises_anew(
        self, sandbox: Sandbox, servicer: Browser, settings: Any
    ) -> None:
        loan = late_loan(sandbox)
        log_contact(servicer, loan, amount="300")
        late = business_day_after(in_days(1), 2)
        sandbox.world.repayment(loan.uuid, amount="300", status="SUCCEEDED", effective_date=late)
        advance(sandbox, (business_day_after(late, 1) - business_date()).days)
        refresh(loan)
        assert promise_state(loan) == "Broken"
        settings.PROMISE_GRACE_DAYS = 2
        call_command("decide_promises")
        assert promise_state(loan) == "Kept"

    @pytest.mark.parametrize("later", [0, 1])
    def test_a_promise_is_decided_when_its_deadline_has_passed(
        self, sandbox: Sandbox, servicer: Browser, later: int
    ) -> None:
        loan = late_loan(sandbox)
        log_contact(servicer, loan, amount="300")
        deadline = business_day_after(in_days(1), 1)
        advance(sandbox, (deadline - business_date()).days + later)
        refresh(loan)
        assert promise_state(loan) == ("Broken" if later else "Open")
        shown = [row["Account"] for row in export_rows(servicer, "?promise=unanswered")]
        assert shown == ([loan.uuid] if later else [])

    def test_promises_are_found_by_their_state(self, sandbox: Sandbox, servicer: Browser) -> None:
        loan = late_loan(sandbox)
        late_loan(sandbox)
        log_contact(servicer, loan, amount="300")
        assert [row["Account"] for row in export_rows(servicer, "?q=promise:open")] == [loan.uuid]
        assert export_rows(servicer, "?q=promise:kept") == []
        answer = pages.visible_text(pages.page(servicer, "/collections/?q=promise:maybe"))
        assert "Use promise:due, open, new, unanswered, broken or kept." in answer

    @pytest.mark.slow
    def test_a_row_shows_the_newest_promise_that_was_not_withdrawn(
        self, sandbox: Sandbox, servicer: Browser
    ) -> None:
        loan = late_loan(sandbox)
        for amount in ("40", "50"):
            log_contact(servicer, loan, amount=amount)
        newest = Promise.objects.get(amount=50)
        servicer.post(f"/collections/promises/{newest.pk}/withdraw/", {"reason": "Logged twice"})
        [row] = export_rows(servicer, "?promise=open")
        assert (row["Promise"], row["Promised amount"]) == ("Open", "40.00")


class TestReturns:
    @pytest.mark.slow
    def test_returns_are_grouped_by_code_with_the_next_payment(
        self, sandbox: Sandbox, servicer: Browser
    ) -> None:
        owner = given.borrower(sandbox)
        loan = late_loan(sandbox, owner)
        for reason in ("R02 - Account closed", "R01 - Insufficient funds", "R01 - Insufficient funds", None):
            payment = sandbox.world.repayment(loan.uuid, amount="100.10", status="SCHEDULED")["uuid"]
            sandbox.world.bounce_payment(payment, reason or "Something else")
        sandbox.world.repayment(
            loan.uuid,
            amount="100.10",
            status="FAILED",
            error_description=None,
            borrower_bank_account_uuid=None,
        )
        next_day = in_days(10)
        sandbox.world.repayment(loan.uuid, amount="1827.70", status="SCHEDULED", effective_date=next_day)
        refresh(loan)
        shown = pages.visible_text(pages.page(servicer, "/collections/returns/"))
        assert "R01 Insufficient funds 2 $200.20" in shown
        assert "R02 Account closed 1 $100.10" in shown
        assert "No code 2 $200.20" in shown
        assert f"$1,827.70 on {next_day:%b} {next_day.day}, {next_day.year}" in shown
        assert "4 in 90 days" in shown
        assert "Not provided" in shown
        only = pages.visible_text(pages.page(servicer, "/collections/returns/?code=R02&days=30"))
        assert only.count("$1,827.70 on") == 1
        file = servicer.get("/collections/returns/export.csv?code=R01")
        found = list(csv.DictReader(io.StringIO(file.getvalue().decode("utf-8-sig"))))
        raw = {one.uuid: one.body for one in sandbox.world.store.all("repayment", owner=loan.uuid)}
        assert len(found) == 2
        for row in found:
            assert Decimal(row["Amount"]) == raw[row["Repayment"]]["amount"]
            assert row["Bank account"] == raw[row["Repayment"]]["borrower_bank_account_uuid"]
        for odd in ("?days=x", "?code=%00", "?days=9999&code=R99"):
            assert servicer.get(f"/collections/returns/{odd}").status_code == 200

    def test_each_payment_says_what_follows(self, sandbox: Sandbox, servicer: Browser) -> None:
        owner = given.borrower(sandbox)
        loan = late_loan(sandbox, owner)
        for reason, amount, days in (
            ("R01 - Insufficient funds", "310", (-183, -100, -50, -2)),
            ("R09 - Uncollected funds", "40", (-180, 0)),
            ("R02 - Account closed", "70", (-3,)),
            ("r29 corporate customer", "80", (-3,)),
            ("R08 - Payment stopped", "90", (-3,)),
            ("R99 - Held", "95", (-3,)),
        ):
            for day in days:
                sandbox.world.repayment(
                    loan.uuid,
                    amount=amount,
                    status="FAILED",
                    error_description=reason,
                    effective_date=in_days(day),
                    borrower_bank_account_uuid=f"bank-{amount}",
                )
        next_day = in_days(3)
        sandbox.world.repayment(
            loan.uuid,
            amount="70",
            status="SCHEDULED",
            effective_date=next_day,
            borrower_bank_account_uuid="bank-70",
        )
        refresh(loan)
        rows = list(
            csv.DictReader(
                io.StringIO(
                    servicer.get("/collections/returns/export.csv?days=7").getvalue().decode("utf-8-sig")
                )
            )
        )
        found = {
            row["Amount"]: (row["What follows"], row["Presentments"], row["Scheduled against the code"])
            for row in rows
        }
        assert found == {
            "310.00": ("No more: 3 payments of this amount came back in 180 days", "3", "No"),
            "40.00": (f"One more by {wording.day(in_days(0))}", "2", "No"),
            "70.00": ("Not again without a new account or authority", "1", "Yes"),
            "80.00": ("Not again until authorized anew", "1", "No"),
            "90.00": ("Ask the borrower", "1", "No"),
            "95.00": ("Ask your bank", "1", "No"),
        }
        shown = pages.visible_text(pages.page(servicer, "/collections/returns/?days=7"))
        assert "1 payment, $70.00, has another scheduled although the code says not again." in shown
        only = pages.visible_text(pages.page(servicer, "/collections/returns/?days=7&conflicts=1"))
        assert "$70.00" in only
        links = re.findall(
            r'<th scope="row"><a href="([^"]*code=[^"]*)">(\w+)',
            pages.page(servicer, "/collections/returns/?days=7&conflicts=1"),
        )
        assert [code for _, code in links] == ["R02"]
        narrowed = servicer.get(f"/collections/returns/{html.unescape(links[0][0])}").context
        assert (narrowed["only"], narrowed["days"], narrowed["code"]) == (True, 7, "R02")
        assert [one.code for one in narrowed["payments"]] == ["R02"]
        assert not servicer.get("/collections/returns/?days=7&conflicts=1&code=R08").context["code"]
        payment = Repayment.objects.get(code="R02")
        page = pages.visible_text(pages.page(servicer, f"/repayments/{payment.uuid}/"))
        assert "R02: account closed. Not again without a new account or authority." in page
        assert f"$70.00 is scheduled again on {wording.day(next_day)}." in page
        assert "R02: not again" in pages.visible_text(pages.page(servicer, "/collections/"))
        home = pages.visible_text(pages.page(servicer, "/?all=1"))
        assert "R02" not in home  # It failed before it was posted, so nothing came back.

    @pytest.mark.parametrize("number", [49, 50])
    def test_rates_need_fifty_payments(self, sandbox: Sandbox, servicer: Browser, number: int) -> None:
        loan = late_loan(sandbox)
        # Those of today and of the 59 days before count.
        days = [*range(number - 2), 59, 60]
        Repayment.objects.bulk_create(
            Repayment(
                uuid=f"rated-{one}", account=loan, status="SUCCEEDED", effective_on=in_days(-one), amount=10
            )
            for one in days
        )
        failed = {"status": "FAILED", "has_failed": True, "code": "R29", "effective_on": in_days(0)}
        Repayment.objects.create(uuid="rated-failed", account=loan, amount=10, **failed)
        shown = pages.visible_text(pages.page(servicer, "/collections/returns/"))
        rate = "2.00% " if number == 50 else ""
        assert f"Unauthorized R05, R07, R10, R29 1 of {number} {rate}0.5%" in shown
        assert f"Administrative R02, R03, R04 0 of {number} {'0.00% ' if rate else ''}3%" in shown

    def test_codes_in_other_words_are_grouped_and_described(
        self, sandbox: Sandbox, servicer: Browser
    ) -> None:
        loan = late_loan(sandbox)
        for reason in ("R01_INSUFFICIENT_FUNDS", "R61: misrouted", "Order R12-3344 failed"):
            payment = sandbox.world.repayment(loan.uuid, amount="100.10", status="SCHEDULED")["uuid"]
            sandbox.world.bounce_payment(payment, reason)
        refresh(loan)
        shown = pages.visible_text(pages.page(servicer, "/collections/returns/"))
        for row in (
            "R01 Insufficient funds 1 $100.10",
            "R61 Misrouted return 1 $100.10",
            "No code 1 $100.10",
        ):
            assert row in shown
        assert "R12 " not in shown

    @pytest.mark.slow
    def test_a_return_is_dated_by_its_message(self, sandbox: Sandbox, servicer: Browser) -> None:
        loan = late_loan(sandbox)
        paid = sandbox.world.repayment(loan.uuid, amount="70", status="SUCCEEDED", effective_date=in_days(-9))
        sandbox.world.bounce_payment(paid["uuid"], "R02 - Account closed")
        call_command("sync_messages", verbosity=0)
        refresh(loan)
        day, expected = in_days(0), [in_days(0).isoformat()]
        for _ in range(2):
            found = servicer.get("/collections/returns/export.csv?days=30").getvalue().decode("utf-8-sig")
            assert [row["Day"] for row in csv.DictReader(io.StringIO(found))] == expected
            advance(sandbox, 5)
        assert in_days(-10) == day

    def test_a_code_is_found_in_any_text_and_follows_its_own_rule(
        self, sandbox: Sandbox, servicer: Browser
    ) -> None:
        loan = late_loan(sandbox)
        reasons = ("r02-account closed", "It came back, the bank says r01: no funds.", "R07/R01", "R99", "r1")
        for reason in reasons:
            payment = sandbox.world.repayment(loan.uuid, amount="10")["uuid"]
            sandbox.world.bounce_payment(payment, reason)
        refresh(loan)
        shown = servicer.get("/collections/returns/").context
        assert {group.title: len(group.payments) for group in shown["by_code"]} == dict.fromkeys(
            ["R02", "R01", "R07", "R99", "No code"], 1
        )
        follows = {one.code: str(one.follows.consequence) for one in shown["payments"]}
        assert follows["R02"].startswith("Not again without a new account")
        assert follows["R07"].startswith("Not again until authorized anew")
        assert follows["R99"] == follows["No code"] == "Ask your bank"

    @pytest.mark.slow
    def test_totals_of_only_the_newest_payments_show_a_notice(
        self, sandbox: Sandbox, servicer: Browser
    ) -> None:
        values = {"status": "FAILED", "has_failed": True, "effective_on": in_days(0)}
        Repayment.objects.bulk_create(
            Repayment(uuid=f"many-{number}", **values) for number in range(MAX_DATED + 1)
        )
        shown = pages.visible_text(pages.page(servicer, "/collections/returns/"))
        assert f"Only the newest {MAX_DATED} are counted." in shown
        # All are counted now, and one more that is of the other kind doesn't change that.
        Repayment.objects.get(uuid="many-0").delete()
        Repayment.objects.create(
            uuid="back", status="FAILED_AFTER_SUCCESS", has_failed=True, effective_on=in_days(0)
        )
        shown = pages.visible_text(pages.page(servicer, "/collections/returns/"))
        assert "are counted" not in shown

    def test_unknown_amounts_and_codes_are_shown(self, sandbox: Sandbox, servicer: Browser) -> None:
        loan = late_loan(sandbox)
        for amount, status, error in (("10", "FAILED", "R99 - Held by the bank"), ("20", "SCHEDULED", None)):
            payment = sandbox.world.repayment(
                loan.uuid, amount=amount, status=status, effective_date=in_days(3), error_description=error
            )
            sandbox.world.amend(payment["uuid"], amount=None)
        refresh(loan)
        shown = pages.visible_text(pages.page(servicer, "/collections/returns/"))
        assert "R99 1 Not known" in shown
        assert "R99 Held by the bank" not in shown
        assert "R99 - Held by the bank" in shown
        assert "An unknown amount on" in shown

    @pytest.mark.slow
    def test_a_payment_that_fails_before_its_date_counts_today(
        self, sandbox: Sandbox, servicer: Browser
    ) -> None:
        loan = late_loan(sandbox)
        Account.objects.filter(pk=loan.pk).update(borrower_uuid="")
        payments = [
            sandbox.world.repayment(loan.uuid, amount="70", status="SCHEDULED", effective_date=in_days(days))
            for days in (5, 6, 20)
        ]
        for payment in payments[:2]:
            sandbox.world.bounce_payment(payment["uuid"], "R03 - No account")
        refresh(loan)
        shown = pages.visible_text(pages.page(servicer, "/collections/returns/"))
        today = in_days(0)
        assert f"By day Day Payments Amount {today:%b} {today.day}, {today.year} 2 $140.00" in shown
        assert "2 in 90 days" in shown
        assert shown.count("$70.00 on") == 2
        failed = Repayment.objects.filter(has_failed=True)
        failed.update(updated_at=timezone.now() - timedelta(days=8))
        assert "No returned payments" in pages.visible_text(pages.page(servicer, "/collections/returns/"))

    def test_an_error_description_alone_is_not_a_return(self, sandbox: Sandbox, servicer: Browser) -> None:
        loan = late_loan(sandbox)
        for status in ("Succeeded", "SCHEDULED"):
            sandbox.world.repayment(
                loan.uuid, status=status, effective_date=in_days(0), error_description="R01 - Later resolved"
            )
        refresh(loan)
        assert "No returned payments" in pages.visible_text(pages.page(servicer, "/collections/returns/"))
        assert not Repayment.objects.filter(has_failed=True).exists()
        sandbox.world.repayment(
            loan.uuid, status="SUCCEEDED", payment_type="RETURNED", error_description="R01 - Not funded"
        )
        refresh(loan)
        assert Repayment.objects.filter(has_failed=True).count() == 1

    @pytest.mark.slow
    def test_an_undated_failed_payment_counts_on_the_day_it_was_read(
        self, sandbox: Sandbox, servicer: Browser
    ) -> None:
        loan = late_loan(sandbox)
        failed = sandbox.world.repayment(loan.uuid, amount="70", status="FAILED", effective_date=in_days(0))
        sandbox.world.amend(failed["uuid"], effective_date=None)
        refresh(loan)
        today = in_days(0)
        shown = pages.visible_text(pages.page(servicer, "/collections/returns/"))
        assert f"By day Day Payments Amount {today:%b} {today.day}, {today.year} 1 $70.00" in shown

    def test_an_empty_page_says_no_returned_payments(self, sandbox: Sandbox, servicer: Browser) -> None:
        assert "No returned payments" in pages.visible_text(pages.page(servicer, "/collections/returns/"))


@pytest.mark.slow
def test_a_collectors_day(sandbox: Sandbox, servicer: Browser) -> None:
    """Walk the worklist, log promises, review returns a few days later, assign accounts and print."""
    loans = [late_loan(sandbox, given.borrower(sandbox)) for _ in range(10)]
    pages.page(servicer, "/collections/")
    address = "/collections/next/"
    for _ in loans:
        page = pages.page(servicer, servicer.get(address)["Location"])
        address = html.unescape(re.search(r'href="([^"]*)" data-key="x"', page)[1])  # type: ignore[index]
    keeps, breaks, other = loans[:3]
    for loan, typed in ((keeps, {"amount": "300"}), (breaks, {"amount": "300"}), (other, {})):
        assert log_contact(servicer, loan, **typed).status_code == 303
    paid = sandbox.world.repayment(keeps.uuid, amount="300", status="SCHEDULED", effective_date=in_days(1))[
        "uuid"
    ]
    failed = sandbox.world.repayment(
        breaks.uuid, amount="300", status="SCHEDULED", effective_date=in_days(1)
    )["uuid"]
    sandbox.world.bounce_payment(failed, "R01 - Insufficient funds")
    days = max(3, (business_day_after(in_days(1), 1) - business_date()).days + 1)
    advance(sandbox, days)
    servicer.post("/collections/refresh/", {"uuid": [one.uuid for one in loans]})
    refresh(*loans)
    assert sandbox.world.store.require("repayment", paid).body["status"] == "SUCCEEDED"
    assert (promise_state(keeps), promise_state(breaks)) == ("Kept", "Broken")
    assert "R01" in pages.visible_text(pages.page(servicer, "/collections/returns/"))
    supervisor, me = browser_of(Role.SUPERVISOR), User.objects.get(username="servicer")
    assigned = [one.uuid for one in loans[5:]]
    supervisor.post("/collections/assign/", {"uuid": assigned, "owner": me.pk})
    assert {row["Account"] for row in export_rows(servicer, f"?owner={me.pk}")} == set(assigned)
    printed = pages.visible_text(pages.page(servicer, f"/collections/print/?owner={me.pk}"))
    assert all(uuid[:8] in printed for uuid in assigned)
