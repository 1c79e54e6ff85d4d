"""The home page: the attention list, the payment numbers and the other sections."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from decimal import Decimal
from uuid import uuid4

import pytest
import time_machine
from django.core.cache import cache
from django.test import Client as Browser
from django.utils import timezone

from portal.accounts.models import User
from portal.audit.chain import append
from portal.audit.models import Actor, RemoteCall, WriteIntent
from portal.borrowers.models import Draft
from portal.gateway.reading import LiveCopy, account_copies, read_live
from portal.jobs.models import Worker
from portal.messaging.models import Message
from portal.messaging.store import save_messages
from portal.notes.models import FollowUp
from portal.records.figures import rank
from portal.records.models import Account, Answer, Borrower, Kind
from portal.ui.attention import MAX_SHOWN
from servicing import Client
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import htmx
from tests.portal import pages
from tests.portal.borrowers.wizard import BUSINESS, Wizard

pytestmark = pytest.mark.postgres

ME = Actor.system("test")


def days_from_now(days: int) -> date:
    return timezone.localdate() + timedelta(days=days)


def read_account(owner: Borrower, kind: Kind, uuid: str) -> Account:
    """Put an account on file and read it with its repayments."""
    for copy in account_copies(given.account(kind, owner, uuid)):
        assert read_live(ME, copy)
    return Account.objects.get(kind=kind, uuid=uuid)


def unknown_write(owner: Borrower, by: str = "servicer") -> WriteIntent:
    return WriteIntent.objects.create(
        submit_id=f"{by}-once",
        operation="applications.submit",
        state=WriteIntent.State.UNKNOWN,
        label="an application for $40,000.00",
        borrower_uuid=owner.uuid,
        actor_id=User.objects.get(username=by).pk,
        actor_name=by,
        request_id="r-1",
        method="POST",
        path="/",
    )


def create_message(at: datetime, status: str) -> Message:
    """Create a message in the saved copy."""
    return Message.objects.create(
        recorded_at=at, uuid=uuid4(), event="payment.failed", status=status, day=timezone.localdate(at)
    )


def number_in(page: str, key: str = "h") -> str:
    """The number beside Home, or beside another area of the navigation."""
    found = re.search(rf'id="waiting-{key}"[^>]*>\s*(\d*)<', page)
    return found[1] if found else "not in the page"


def waiting_number(browser: Browser) -> str:
    return number_in(browser.get("/attention/waiting/").content.decode())


def attention_items(browser: Browser, query: str = "") -> list[str]:
    """The sentences of the attention list."""
    cache.clear()
    return [item.sentence for item, _ in browser.get(f"/{query}").context["items"]]


def flagged_account(sandbox: Sandbox, kind: Kind, past_due: str | None, name: str) -> Account:
    record = given.account(kind, given.borrower(sandbox, first_name=name), uuid4().hex)
    Account.objects.filter(pk=record.pk).update(
        is_past_due=True,
        past_due=past_due and Decimal(past_due),
        past_due_rank=rank(past_due and Decimal(past_due), is_late=True),
    )
    return record


@contextmanager
def no_calls() -> Iterator[None]:
    before = RemoteCall.objects.count()
    yield
    assert RemoteCall.objects.count() == before


class TestAttention:
    def test_an_empty_list_says_nothing_needs_attention(self, servicer: Browser) -> None:
        assert "Nothing needs attention" in servicer.get("/").content.decode()

    def test_page_warns_while_no_worker_is_running(self, servicer: Browser) -> None:
        Worker.objects.create(id="gone", beat_at=timezone.now() - timedelta(hours=2))
        assert "no worker is running" in servicer.get("/").content.decode()
        Worker.objects.create(id="back", beat_at=timezone.now())
        assert "no worker is running" not in servicer.get("/").content.decode()

    def test_items_are_sorted_worst_first(self, portal_service: Sandbox, servicer: Browser) -> None:
        owner = given.borrower(portal_service)
        unknown_write(owner)
        line = portal_service.world.line(owner.uuid, past_due_balance=Decimal("310.00"), days_past_due=12)
        loan = portal_service.world.loan(owner.uuid, delinquent=True)
        portal_service.world.repayment(loan["uuid"], amount="88.10", status="FAILED_AFTER_SUCCESS")
        due = portal_service.world.line(
            owner.uuid, payment_due_date=str(days_from_now(3)), payment_amount_due=Decimal("880.50")
        )
        read_account(owner, Kind.LINE, line["uuid"])
        read_account(owner, Kind.LOAN, loan["uuid"])
        read_account(owner, Kind.LINE, due["uuid"])
        with no_calls():
            assert [item[:22] for item in attention_items(servicer)] == [
                "Outcome unknown: an ap",
                "$88.10 payment returne",
                "$310.00 past due, 12 d",
                "An unknown amount past",
                "Payment of $880.50 due",
            ]

    def test_a_closed_loan_has_no_payment_due(self, portal_service: Sandbox, servicer: Browser) -> None:
        owner = given.borrower(portal_service)
        installment = {"due_date": str(days_from_now(3)), "total": Decimal("50.00"), "status": "SCHEDULED"}
        for status in ("Charged off", "ACTIVE"):
            loan = portal_service.world.loan(
                owner.uuid, status=status, delinquent=False, autopay_enabled=False
            )
            portal_service.world.amend(loan["uuid"], installments=[installment])
            read_account(owner, Kind.LOAN, loan["uuid"])
        assert [item[:21] for item in attention_items(servicer)] == ["Payment of $50.00 due"]

    @pytest.mark.slow
    def test_a_long_group_shows_its_worst_items_and_total_count(
        self, portal_service: Sandbox, servicer: Browser
    ) -> None:
        for number in range(12):
            flagged_account(portal_service, Kind.LINE, f"{number + 1}.00", f"Borrower {number}")
        assert [item.split()[0] for item in attention_items(servicer)] == ["$12.00", "$11.00", "$10.00"]
        html = servicer.get("/").content.decode()
        assert 'Past due <span class="sd-count">12</span></h3>' in html
        assert ">Show all</a>" in html
        assert (
            len(attention_items(servicer, "?show=past_due")) == len(attention_items(servicer, "?all=1")) == 12
        )

    @pytest.mark.slow
    def test_title_and_groups_show_past_due_totals(self, portal_service: Sandbox, servicer: Browser) -> None:
        for kind, amount in ((Kind.LINE, "310.25"), (Kind.LOAN, "1000.10"), (Kind.LOAN, None)):
            flagged_account(portal_service, kind, amount, "Past Due LLC")
        shown = pages.visible_text(servicer.get("/").content.decode())
        assert "3 items need attention · $1,310.35 past due on 3 accounts (1 without a figure)" in shown
        assert "Past due 3 $1,310.35, plus 1 without a figure" in shown
        assert [item.split()[0] for item in attention_items(servicer)] == ["$1,000.10", "$310.25", "An"]
        loan = Account.objects.get(kind=Kind.LOAN, past_due=Decimal("1000.10"))
        servicer.post(
            f"/attention/snooze/?item=loan:{loan.uuid}", {"until": str(days_from_now(5)), "reason": "Known"}
        )
        assert "$310.25 past due on 2 accounts (1 without a figure)" in pages.visible_text(
            servicer.get("/").content.decode()
        )

    def test_only_installments_due_soon_are_listed(self, portal_service: Sandbox, servicer: Browser) -> None:
        owner = given.borrower(portal_service)
        near = [
            {
                "number": 1,
                "due_date": str(days_from_now(2)),
                "total": Decimal("101.50"),
                "status": "SCHEDULED",
            }
        ]
        far = [
            {
                "number": 1,
                "due_date": str(days_from_now(40)),
                "total": Decimal("99.00"),
                "status": "SCHEDULED",
            }
        ]
        for rows in (near, far):
            loan = portal_service.world.loan(owner.uuid, autopay_enabled=False)
            portal_service.world.amend(loan["uuid"], installments=rows)
            read_account(owner, Kind.LOAN, loan["uuid"])
        (only,) = attention_items(servicer)
        assert only.startswith("Payment of $101.50 due")

    def test_items_link_to_the_account_and_borrower(self, portal_service: Sandbox, servicer: Browser) -> None:
        owner = given.borrower(portal_service)
        line = read_account(
            owner, Kind.LINE, portal_service.world.line(owner.uuid, past_due_balance=Decimal("5"))["uuid"]
        )
        page = servicer.get("/").content.decode()
        assert f'href="{line.get_absolute_url()}"' in page
        assert f'href="{owner.get_absolute_url()}"' in page
        assert servicer.get(line.get_absolute_url()).status_code == 200

    def test_old_returned_repayments_are_not_listed(self, portal_service: Sandbox, servicer: Browser) -> None:
        owner = given.borrower(portal_service)
        loan = portal_service.world.loan(owner.uuid)
        for days, amount in ((-6, "6.00"), (-8, "8.00")):
            portal_service.world.repayment(
                loan["uuid"], amount=amount, payment_type="RETURNED", effective_date=days_from_now(days)
            )
        read_account(owner, Kind.LOAN, loan["uuid"])
        assert [item for item in attention_items(servicer) if "returned" in item] == [
            "$6.00 payment returned"
        ]

    def test_a_return_is_recent_by_its_message_or_status_change(
        self, portal_service: Sandbox, service_client: Client, servicer: Browser
    ) -> None:
        world, owner = portal_service.world, given.borrower(portal_service)
        loan = world.loan(owner.uuid)
        announced, refreshed, old = (
            world.repayment(loan["uuid"], amount=amount, effective_date=days_from_now(-40))
            for amount in ("11.00", "12.00", "13.00")
        )
        world.amend(old["uuid"], status="FAILED_AFTER_SUCCESS")
        read_account(owner, Kind.LOAN, loan["uuid"])
        for payment in (announced, refreshed):
            world.amend(payment["uuid"], status="FAILED_AFTER_SUCCESS")
        read_account(owner, Kind.LOAN, loan["uuid"])
        for payment, days in ((announced, 3), (old, 20)):
            payload = payment | {"status": "FAILED_AFTER_SUCCESS"}
            world.message("payment.failed_after_success", payload, at=timezone.now() - timedelta(days=days))
        save_messages(service_client.messages.list(limit=10).data)
        returned = [item for item in attention_items(servicer) if "returned" in item]
        assert returned == [
            "$12.00 payment returned after posting",
            "$11.00 payment returned after posting",
        ]
        items = [item for item, _ in servicer.get("/").context["items"] if item.key.startswith("repayment:")]
        assert {item.meta for item in items} == {f"loan {loan['uuid'][:8]}. Ask your bank."}

    @pytest.mark.slow
    def test_a_new_undelivered_message_wakes_the_snoozed_item(
        self, portal_service: Sandbox, servicer: Browser
    ) -> None:
        now = timezone.now()
        create_message(now, "SUCCESS")
        create_message(now - timedelta(days=9), "FAILED")
        assert attention_items(servicer) == []
        create_message(now - timedelta(hours=2), "FAILED")
        create_message(now - timedelta(hours=1), "UNDELIVERED")
        assert attention_items(servicer) == ["2 messages not delivered. Newest: Payment failed"]
        ((item, _),) = servicer.get("/").context["items"]
        assert "status=FAILED&status=UNDELIVERED" in item.url
        servicer.post(
            f"/attention/snooze/?item={item.key}", {"until": str(days_from_now(5)), "reason": "Known"}
        )
        assert attention_items(servicer) == []
        create_message(now + timedelta(seconds=2), "FAILED")
        assert attention_items(servicer) == ["3 messages not delivered. Newest: Payment failed"]

    @pytest.mark.slow
    def test_a_new_borrower_with_unsent_details_is_listed(
        self, portal_service: Sandbox, servicer: Browser
    ) -> None:
        owner = given.borrower(portal_service)
        intent = unknown_write(owner)
        WriteIntent.objects.filter(pk=intent.pk).update(
            operation="borrowers.create_commercial", state="confirmed", finished_at=timezone.now()
        )
        assert attention_items(servicer) == ["No asset report and 2 more"]
        assert attention_items(servicer, "?show=mine") == attention_items(servicer)

    def test_only_my_own_old_drafts_are_listed(self, servicer: Browser, supervisor: Browser) -> None:
        for name in ("servicer", "supervisor"):
            Draft.objects.create(
                owner=User.objects.get(username=name), data={"business": [{"first_name": f"Draft of {name}"}]}
            )
        assert attention_items(servicer) == []
        Draft.objects.update(updated_at=timezone.now() - timedelta(days=2))
        assert attention_items(servicer) == ["Draft not sent: Draft of servicer"]

    @pytest.mark.slow
    def test_filter_counts_match_their_lists(
        self, portal_service: Sandbox, servicer: Browser, supervisor: Browser
    ) -> None:
        owner = given.borrower(portal_service)
        unknown_write(owner)
        unknown_write(owner, by="supervisor")
        read_account(
            owner, Kind.LINE, portal_service.world.line(owner.uuid, past_due_balance=Decimal("5"))["uuid"]
        )
        counts = {name: count for name, _, count in servicer.get("/").context["attention"].pills}
        assert counts == {"": 3, "mine": 1, "past_due": 1, "system": 2}
        for name, count in counts.items():
            assert len(attention_items(servicer, f"?show={name}")) == count
            pills = servicer.get(f"/?show={name}").context["pills"]
            assert [pill[0] for pill in pills] == list(dict.fromkeys(["", "mine", name]))

    def test_an_invalid_filter_shows_all_items(self, portal_service: Sandbox, servicer: Browser) -> None:
        unknown_write(given.borrower(portal_service))
        items = attention_items(servicer)
        assert len(items) == 1
        assert attention_items(servicer, "?show=%00<script>&numbers=x") == items

    def test_a_truncated_list_shows_its_total_and_a_link(
        self, portal_service: Sandbox, servicer: Browser
    ) -> None:
        Account.objects.bulk_create(
            Account(
                kind=Kind.LINE,
                uuid=f"line-{n}",
                borrower_uuid="b",
                is_past_due=True,
                past_due=n,
                past_due_rank=n,
            )
            for n in range(40)
        )
        page = servicer.get("/?show=past_due").content.decode()
        assert f"Showing {MAX_SHOWN} of 40" in page
        assert ">All 40 lines past due</a>" in page
        assert "40 items need attention" in page

    def test_the_number_in_the_navigation_arrives_after_the_page(
        self, portal_service: Sandbox, servicer: Browser
    ) -> None:
        unknown_write(given.borrower(portal_service))
        assert 'hx-get="/attention/waiting/"' in servicer.get("/borrowers/").content.decode()
        assert waiting_number(servicer) == "1"
        page = servicer.get("/borrowers/").content.decode()
        assert 'hx-get="/attention/waiting/"' not in page
        assert number_in(page) == "1"

    def test_the_number_is_fresh_after_ones_own_action(
        self, portal_service: Sandbox, servicer: Browser
    ) -> None:
        first, _ = (flagged_account(portal_service, Kind.LOAN, "700.00", "Late LLC") for _ in range(2))
        assert waiting_number(servicer) == "2"
        servicer.post(
            f"/attention/snooze/?item=loan:{first.uuid}", {"until": str(days_from_now(5)), "reason": "Known"}
        )
        page = servicer.get("/borrowers/").content.decode()
        assert ('hx-get="/attention/waiting/"' in page, number_in(page)) == (True, "")
        assert waiting_number(servicer) == "1"
        assert number_in(servicer.get("/").content.decode()) == "1"

    def test_the_number_is_that_of_the_page(self, portal_service: Sandbox, servicer: Browser) -> None:
        for kind in (Kind.LOAN, Kind.LOAN, Kind.LINE):
            flagged_account(portal_service, kind, "700.00", "Late LLC")
        page = servicer.get("/").content.decode()
        assert "3 items need attention" in page
        assert number_in(page) == "3"
        assert number_in(servicer.get("/borrowers/").content.decode()) == waiting_number(servicer) == "3"

    def test_each_person_has_a_number_of_their_own(self, servicer: Browser, supervisor: Browser) -> None:
        for name, drafts in (("servicer", 1), ("supervisor", 2)):
            for _ in range(drafts):
                Draft.objects.create(owner=User.objects.get(username=name), data={})
        Draft.objects.update(updated_at=timezone.now() - timedelta(days=2))
        assert [waiting_number(one) for one in (servicer, supervisor)] == ["1", "2"]

    @pytest.mark.slow
    def test_settled_writes_are_not_listed(
        self, portal_service: Sandbox, viewer: Browser, servicer: Browser
    ) -> None:
        intent = unknown_write(given.borrower(portal_service))
        for state in ("sending", "confirmed", "rejected", "not_sent"):
            WriteIntent.objects.filter(pk=intent.pk).update(state=state)
            assert attention_items(viewer) == []

    def test_an_interrupted_write_is_listed_as_unknown(
        self, portal_service: Sandbox, viewer: Browser, servicer: Browser
    ) -> None:
        write = unknown_write(given.borrower(portal_service))
        WriteIntent.objects.update(state="sending", created_at=timezone.now() - timedelta(minutes=5))
        assert attention_items(viewer) == ["Outcome unknown: an application for $40,000.00"]
        write.refresh_from_db()
        assert write.state == "unknown"

    def test_an_unknown_update_is_described_as_a_change(
        self, portal_service: Sandbox, viewer: Browser, servicer: Browser
    ) -> None:
        unknown_write(given.borrower(portal_service, first_name="Northwind LLC"))
        WriteIntent.objects.update(method="PUT", label="Northwind LLC")
        assert attention_items(viewer) == ["Outcome unknown: change to Northwind LLC"]
        assert ">Northwind LLC</a>" not in viewer.get("/").content.decode()

    def test_accounts_are_sorted_by_past_due_amount(self, portal_service: Sandbox, viewer: Browser) -> None:
        flagged_account(portal_service, Kind.LOAN, None, "Unknown Debt LLC")
        flagged_account(portal_service, Kind.LOAN, "700.00", "Middle Debt LLC")
        flagged_account(portal_service, Kind.LINE, "12.50", "Small Debt LLC")
        flagged_account(portal_service, Kind.LINE, "9000.00", "Large Debt LLC")
        page = viewer.get("/?show=past_due").content.decode()
        names = re.findall(r"(Unknown|Small|Middle|Large) Debt LLC</b></a>", page)
        assert names == ["Large", "Middle", "Small", "Unknown"]

    def test_archived_accounts_are_not_listed(self, portal_service: Sandbox, viewer: Browser) -> None:
        record = flagged_account(portal_service, Kind.LINE, "310.00", "Acme Farms LLC")
        Account.objects.filter(pk=record.pk).update(archived_at=timezone.now())
        assert attention_items(viewer) == []

    def test_home_page_does_not_call_the_service(self, portal_service: Sandbox, viewer: Browser) -> None:
        flagged_account(portal_service, Kind.LINE, "310.00", "Acme Farms LLC")
        viewer.get("/")
        assert portal_service.calls == []


class TestNumbers:
    @pytest.mark.slow
    @pytest.mark.parametrize("spell", [str.upper, str.lower, str.capitalize])
    def test_seven_day_totals_match_the_repayment_list(
        self, portal_service: Sandbox, viewer: Browser, spell: Callable[[str], str]
    ) -> None:
        owner = given.borrower(portal_service)
        loan, line = portal_service.world.loan(owner.uuid), portal_service.world.line(owner.uuid)
        today, paid = days_from_now(0), {"status": spell("SUCCEEDED")}
        portal_service.world.repayment(loan["uuid"], amount="100.10", effective_date=today, **paid)
        portal_service.world.repayment(line["uuid"], amount="0.20", effective_date=days_from_now(-6), **paid)
        portal_service.world.repayment(
            line["uuid"], amount="7.00", status=spell("FAILED"), effective_date=today
        )
        portal_service.world.repayment(line["uuid"], amount="1.00", effective_date=days_from_now(-7), **paid)
        read_account(owner, Kind.LOAN, loan["uuid"])
        read_account(owner, Kind.LINE, line["uuid"])
        shown = viewer.get("/").context["numbers"].week
        assert (shown.succeeded.count, shown.succeeded.sum) == (2, Decimal("100.30"))
        assert (shown.failed.count, shown.failed.sum) == (1, Decimal("7.00"))
        assert {name: paid.count for name, paid, _ in shown.products} == {"LOAN": 1, "LOC": 1}
        for url, count in ((shown.succeeded_url, 2), (shown.failed_url, 1)):
            assert viewer.get(url).context["listing"].total == count
        assert [tab.words for tab in viewer.get("/repayments/").context["tabs"]] == [
            "All",
            "Failed",
            "Succeeded",
        ]

    def test_payments_are_shown_as_a_chart_and_a_table(
        self, portal_service: Sandbox, viewer: Browser
    ) -> None:
        owner = given.borrower(portal_service)
        loan = portal_service.world.loan(owner.uuid)
        portal_service.world.repayment(loan["uuid"], amount="50.00")
        read_account(owner, Kind.LOAN, loan["uuid"])
        page = viewer.get("/").content.decode()
        table = viewer.get("/?numbers=table", headers=htmx("numbers")).content.decode()
        chart = page.partition('class="sd-days"')[2].partition("</div>")[0]
        words = [pages.visible_text(one) for one in re.findall(r"<a href.*?</a>", chart, re.DOTALL)]
        today = days_from_now(0)
        assert "Highest $50.00" in pages.visible_text(chart)
        assert len(words) == 7
        assert (words[0].partition(": ")[2], words[-1]) == ("$0.00", f"{today:%b} {today.day}: $50.00")
        assert f'href="/repayments/?from={today}&amp;to={today}"' in chart
        assert table.lstrip().startswith("<section")
        assert table.count('scope="row"') == 7
        assert "$50.00" in table

    def test_updated_account_count_is_shown(self, portal_service: Sandbox, viewer: Browser) -> None:
        owner = given.borrower(portal_service)
        read_account(owner, Kind.LOAN, portal_service.world.loan(owner.uuid)["uuid"])
        given.account(Kind.LINE, owner, "0f0e0d0c-0000-4000-8000-000000000009")
        assert "1 of 2 accounts updated in the last 24 hours" in viewer.get("/").content.decode()


class TestSections:
    def test_recent_borrowers_are_the_ones_i_viewed(
        self, portal_service: Sandbox, servicer: Browser, viewer: Browser
    ) -> None:
        mine, other = (
            given.borrower(portal_service, first_name="Mine LLC"),
            given.borrower(portal_service, first_name="Other LLC"),
        )
        servicer.get(mine.get_absolute_url())
        viewer.get(other.get_absolute_url())
        assert [record.label for record, _ in servicer.get("/").context["recent"]] == ["Mine LLC"]

    def test_a_borrower_opened_again_is_the_most_recent(
        self, portal_service: Sandbox, servicer: Browser
    ) -> None:
        owners = [given.borrower(portal_service, first_name=f"{name} LLC") for name in ("First", "Second")]
        with time_machine.travel(timezone.now(), tick=False) as clock:
            for owner in (*owners, owners[0]):
                servicer.get(owner.get_absolute_url())
                clock.shift(timedelta(minutes=1))
        recent = [record.label for record, _ in servicer.get("/").context["recent"]]
        assert recent == ["First LLC", "Second LLC"]

    def test_a_draft_is_shown_only_to_its_owner(self, servicer: Browser, supervisor: Browser) -> None:
        Wizard(servicer).post("business", BUSINESS, act="save")
        draft = Draft.objects.get(owner=User.objects.get(username="servicer"))
        assert f'href="{draft.get_absolute_url()}"' in servicer.get("/").content.decode()
        assert (
            "drafts and follow-ups appear here" in supervisor.get("/", headers=htmx("work")).content.decode()
        )

    def test_my_open_follow_ups_are_listed(self, portal_service: Sandbox, servicer: Browser) -> None:
        owner = given.borrower(portal_service)
        user = User.objects.get(username="servicer")
        for title, done in (("Call Priya", None), ("Done already", timezone.now())):
            FollowUp.objects.create(
                borrower_uuid=owner.uuid, title=title, due=days_from_now(0), owner_id=user.pk, done_at=done
            )
        page = servicer.get("/").content.decode()
        assert "Call Priya" in page
        assert "Done already" not in page

    @pytest.mark.slow
    def test_team_activity_lists_changes_but_not_views(
        self, portal_service: Sandbox, servicer: Browser, viewer: Browser
    ) -> None:
        owner = given.borrower(portal_service)
        servicer.get(owner.get_absolute_url())
        servicer.post(f"/notes/new/borrower/{owner.uuid}/", {"text": "Prefers mornings"})
        assert [text.split()[0] for _, text in viewer.get("/").context["activity"]] == ["added"]

    def test_team_activity_reads_as_sentences_without_sign_ins(self, viewer: Browser) -> None:
        maya = Actor(name="Maya Chen", role="servicer")
        append(maya, "lookup.archive", subject_label="Northwind LLC")
        append(maya, "accounts.sign_in")
        activity = viewer.get("/", headers=htmx("activity")).content.decode()
        assert "Maya Chen archived Northwind LLC" in activity
        assert "signed in" not in activity

    @pytest.mark.parametrize("section", ["home-health", "attention", "numbers", "work", "activity"])
    def test_each_section_refreshes_separately(self, viewer: Browser, section: str) -> None:
        fragment = viewer.get("/", headers=htmx(section)).content.decode()
        assert fragment.lstrip().startswith("<section")
        assert f'id="{section}"' in fragment.partition(">")[0]
        assert "data-refresh" in fragment.partition(">")[0]
        assert "<html" not in fragment

    @pytest.mark.slow
    def test_page_reports_a_service_outage(self, portal_service: Sandbox, viewer: Browser) -> None:
        owner = given.borrower(portal_service)
        line = read_account(
            owner, Kind.LINE, portal_service.world.line(owner.uuid, past_due_balance=Decimal("5"))["uuid"]
        )
        RemoteCall.objects.update(at=timezone.now() - timedelta(minutes=5))
        portal_service.fail_next("*", times=10, status=503)
        Answer.objects.update(asked_at=None)
        assert not read_live(ME, LiveCopy(line))
        cache.clear()
        with no_calls():
            page = viewer.get("/").content.decode()
        assert "Statements failing since" in page
        assert "$5.00 past due" in page

    def test_signed_out_visitors_are_sent_to_sign_in(self, anonymous: Browser) -> None:
        assert "/sign-in/" in anonymous.get("/")["Location"]
