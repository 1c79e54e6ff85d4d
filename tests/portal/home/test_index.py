"""The first page: what waits, the worst first, each one click from its proof, and nothing asked of the service."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from decimal import Decimal
from uuid import uuid4

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client as Browser
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from portal.accounts.models import User
from portal.audit.chain import append
from portal.audit.models import Actor, RemoteCall, WriteIntent
from portal.borrowers.models import Draft
from portal.jobs.models import Worker
from portal.jobs.worker import run_chores
from portal.live.reading import account_records, read_live
from portal.messaging.models import Message, first_key_at
from portal.messaging.store import save_messages
from portal.notes.models import FollowUp
from portal.registry.attention import MAX_SHOWN, save_count, saved_count
from portal.registry.figures import rank
from portal.registry.models import Kind, Record
from portal.registry.recalculation import account_state
from servicing import Client
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import htmx
from tests.portal import pages
from tests.portal.borrowers.wizard import BUSINESS, Wizard

ME = Actor.system("test")


def days_from_now(days: int) -> date:
    return timezone.localdate() + timedelta(days=days)


def read(owner: Record, kind: Kind, uuid: str) -> Record:
    """Make an account known and read it, with its repayments."""
    for record in account_records(given.account(kind, owner, uuid)):
        assert read_live(ME, record)
    return Record.objects.get(kind=kind, uuid=uuid)


def unknown_write(owner: Record, by: str = "servicer") -> WriteIntent:
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


def delivered(at: datetime, status: str) -> Message:
    """A message of the local copy."""
    return Message.objects.create(
        pk=first_key_at(at), uuid=uuid4(), event="payment.failed", status=status, day=timezone.localdate(at)
    )


def facts(browser: Browser, query: str = "") -> list[str]:
    """The lines of the list as they read."""
    cache.clear()
    return [item.sentence for item, _ in browser.get(f"/{query}").context["items"]]


def flagged(sandbox: Sandbox, kind: Kind, past_due: str | None, name: str) -> Record:
    record = given.account(kind, given.borrower(sandbox, first_name=name), uuid4().hex)
    Record.objects.filter(pk=record.pk).update(
        flagged=True,
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
    def test_an_empty_desk_says_what_will_appear(self, servicer: Browser) -> None:
        assert "Nothing needs attention" in servicer.get("/").content.decode()

    def test_a_worker_that_has_gone_is_said_until_there_is_one(self, servicer: Browser) -> None:
        Worker.objects.create(id="gone", beat_at=timezone.now() - timedelta(hours=2))
        assert "no worker is running" in servicer.get("/").content.decode()
        Worker.objects.create(id="back", beat_at=timezone.now())
        assert "no worker is running" not in servicer.get("/").content.decode()

    def test_everything_that_waits_stands_in_one_list_the_worst_first(
        self, portal_service: Sandbox, servicer: Browser
    ) -> None:
        owner = given.borrower(portal_service)
        unknown_write(owner)
        line = portal_service.world.line(owner.uuid, past_due_balance=Decimal("310.00"), days_past_due=12)
        loan = portal_service.world.loan(owner.uuid, delinquent=True)
        portal_service.world.repayment(loan["uuid"], amount="88.10", status="FAILED_AFTER_SUCCESS")
        due = portal_service.world.line(
            owner.uuid, payment_due_date=str(days_from_now(3)), payment_amount_due=Decimal("880.50")
        )
        read(owner, Kind.LINE, line["uuid"])
        read(owner, Kind.LOAN, loan["uuid"])
        read(owner, Kind.LINE, due["uuid"])
        with no_calls():
            assert [fact[:22] for fact in facts(servicer)] == [
                "Outcome unknown: an ap",
                "Repayment of $88.10 re",
                "An unknown amount past",
                "$310.00 past due, 12 d",
                "Payment of $880.50 due",
            ]

    def test_a_closed_loan_has_no_payment_due(self, portal_service: Sandbox, servicer: Browser) -> None:
        owner = given.borrower(portal_service)
        coming = {"due_date": str(days_from_now(3)), "total": Decimal("50.00"), "status": "SCHEDULED"}
        for status in ("Charged off", "ACTIVE"):
            loan = portal_service.world.loan(owner.uuid, status=status, delinquent=False)
            portal_service.world.amend(loan["uuid"], installments=[coming])
            read(owner, Kind.LOAN, loan["uuid"])
        assert [fact[:21] for fact in facts(servicer)] == ["Payment of $50.00 due"]

    def test_a_long_list_begins_with_the_worst_and_tells_how_many_more_wait(
        self, portal_service: Sandbox, servicer: Browser
    ) -> None:
        for number in range(12):
            flagged(portal_service, Kind.LINE, f"{number + 1}.00", f"Borrower {number}")
        assert [fact.split()[0] for fact in facts(servicer)] == ["$12.00", "$11.00", "$10.00"]
        html = servicer.get("/").content.decode()
        assert 'Past due <span class="sd-count">12</span></h3>' in html
        assert ">Show all</a>" in html
        assert len(facts(servicer, "?show=past_due")) == len(facts(servicer, "?all=1")) == 12

    def test_the_title_says_what_is_past_due_and_each_group_its_sum(
        self, portal_service: Sandbox, servicer: Browser
    ) -> None:
        for kind, amount in ((Kind.LINE, "310.25"), (Kind.LOAN, "1000.10"), (Kind.LOAN, None)):
            flagged(portal_service, kind, amount, "Past Due LLC")
        shown = pages.words(servicer.get("/").content.decode())
        assert "3 items need attention · $1,310.35 past due on 3 accounts (1 not known)" in shown
        assert "Past due 3 $1,310.35, plus 1 not known" in shown
        assert [fact.split()[0] for fact in facts(servicer)] == ["An", "$1,000.10", "$310.25"]
        loan = Record.objects.get(kind=Kind.LOAN, past_due=Decimal("1000.10"))
        servicer.post(
            f"/attention/snooze/?item=loan:{loan.uuid}", {"until": str(days_from_now(5)), "reason": "Known"}
        )
        assert "$310.25 past due on 2 accounts (1 not known)" in pages.words(
            servicer.get("/").content.decode()
        )

    def test_a_loan_whose_installment_is_near_is_in_it(
        self, portal_service: Sandbox, servicer: Browser
    ) -> None:
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
            made = portal_service.world.loan(owner.uuid)
            portal_service.world.amend(made["uuid"], installments=rows)
            read(owner, Kind.LOAN, made["uuid"])
        (only,) = facts(servicer)
        assert only.startswith("Payment of $101.50 due")

    def test_each_line_leads_to_its_proof_and_to_its_borrower(
        self, portal_service: Sandbox, servicer: Browser
    ) -> None:
        owner = given.borrower(portal_service)
        line = read(
            owner, Kind.LINE, portal_service.world.line(owner.uuid, past_due_balance=Decimal("5"))["uuid"]
        )
        page = servicer.get("/").content.decode()
        assert f'href="{line.get_absolute_url()}"' in page
        assert f'href="{owner.get_absolute_url()}"' in page
        assert servicer.get(line.get_absolute_url()).status_code == 200

    def test_returned_long_ago_is_not_in_it(self, portal_service: Sandbox, servicer: Browser) -> None:
        owner = given.borrower(portal_service)
        loan = portal_service.world.loan(owner.uuid)
        for days, amount in ((-6, "6.00"), (-8, "8.00")):
            portal_service.world.repayment(
                loan["uuid"], amount=amount, payment_type="RETURNED", effective_date=days_from_now(days)
            )
        read(owner, Kind.LOAN, loan["uuid"])
        assert [fact for fact in facts(servicer) if "Repayment" in fact] == ["Repayment of $6.00 returned"]

    def test_a_return_is_news_on_the_day_of_its_message_or_of_the_copy_that_changed(
        self, portal_service: Sandbox, service_client: Client, servicer: Browser
    ) -> None:
        world, owner = portal_service.world, given.borrower(portal_service)
        loan = world.loan(owner.uuid)
        told, seen, old = (
            world.repayment(loan["uuid"], amount=amount, effective_date=days_from_now(-40))
            for amount in ("11.00", "12.00", "13.00")
        )
        world.amend(old["uuid"], status="FAILED_AFTER_SUCCESS")
        read(owner, Kind.LOAN, loan["uuid"])
        for payment in (told, seen):
            world.amend(payment["uuid"], status="FAILED_AFTER_SUCCESS")
        read(owner, Kind.LOAN, loan["uuid"])
        for payment, days in ((told, 3), (old, 20)):
            payload = payment | {"status": "FAILED_AFTER_SUCCESS"}
            world.message("payment.failed_after_success", payload, at=timezone.now() - timedelta(days=days))
        save_messages(service_client.messages.list(limit=10).data)
        returned = [fact for fact in facts(servicer) if "returned" in fact]
        assert returned == [
            "Repayment of $12.00 returned after posting",
            "Repayment of $11.00 returned after posting",
        ]

    def test_messages_that_did_not_arrive_are_one_line_until_there_are_new_ones(
        self, portal_service: Sandbox, servicer: Browser
    ) -> None:
        now = timezone.now()
        delivered(now, "SUCCESS")
        delivered(now - timedelta(days=9), "FAILED")
        assert facts(servicer) == []
        delivered(now - timedelta(hours=2), "FAILED")
        delivered(now - timedelta(hours=1), "UNDELIVERED")
        assert facts(servicer) == ["2 messages not delivered. Newest: Payment failed"]
        ((item, _),) = servicer.get("/").context["items"]
        assert "status=FAILED&status=UNDELIVERED" in item.url
        servicer.post(
            f"/attention/snooze/?item={item.key}", {"until": str(days_from_now(5)), "reason": "Known"}
        )
        assert facts(servicer) == []
        delivered(now + timedelta(seconds=2), "FAILED")
        assert facts(servicer) == ["3 messages not delivered. Newest: Payment failed"]

    def test_what_was_not_sent_of_a_new_borrower_waits(
        self, portal_service: Sandbox, servicer: Browser
    ) -> None:
        owner = given.borrower(portal_service)
        intent = unknown_write(owner)
        WriteIntent.objects.filter(pk=intent.pk).update(
            operation="borrowers.create_commercial", state="confirmed", finished_at=timezone.now()
        )
        assert facts(servicer) == ["No asset report sent from here and 2 more"]
        assert facts(servicer, "?show=mine") == facts(servicer)

    def test_only_my_own_old_drafts_are_in_it(self, servicer: Browser, supervisor: Browser) -> None:
        for name in ("servicer", "supervisor"):
            Draft.objects.create(
                owner=User.objects.get(username=name), data={"business": [{"first_name": f"Draft of {name}"}]}
            )
        assert facts(servicer) == []
        Draft.objects.update(updated_at=timezone.now() - timedelta(days=2))
        assert facts(servicer) == ["Draft not sent: Draft of servicer"]

    def test_filters_count_and_keep_to_their_kind(
        self, portal_service: Sandbox, servicer: Browser, supervisor: Browser
    ) -> None:
        owner = given.borrower(portal_service)
        unknown_write(owner)
        unknown_write(owner, by="supervisor")
        read(owner, Kind.LINE, portal_service.world.line(owner.uuid, past_due_balance=Decimal("5"))["uuid"])
        counts = {name: count for name, _, count in servicer.get("/").context["attention"].pills}
        assert counts == {"": 3, "mine": 1, "past_due": 1, "system": 2}
        for name, count in counts.items():
            assert len(facts(servicer, f"?show={name}")) == count

    def test_a_strange_filter_is_no_filter(self, servicer: Browser) -> None:
        assert servicer.get("/?show=%00<script>&numbers=x").status_code == 200

    def test_more_than_fits_is_counted_and_linked(self, portal_service: Sandbox, servicer: Browser) -> None:
        Record.objects.bulk_create(
            Record(
                kind=Kind.LINE, uuid=f"line-{n}", borrower_uuid="b", flagged=True, past_due=n, past_due_rank=n
            )
            for n in range(40)
        )
        page = servicer.get("/?show=past_due").content.decode()
        assert f"Showing {MAX_SHOWN} of 40" in page
        assert ">All 40 lines past due</a>" in page
        assert "40 items need attention" in page

    def test_navigation_counts_what_waits_on_every_page(
        self, portal_service: Sandbox, servicer: Browser
    ) -> None:
        unknown_write(given.borrower(portal_service))
        page = servicer.get("/borrowers/").content.decode()
        assert '<span class="sd-nav-count">1<' in page

    def test_it_counts_what_the_page_itself_read(self, portal_service: Sandbox, servicer: Browser) -> None:
        owner = given.borrower(portal_service)
        line = portal_service.world.line(owner.uuid, past_due_balance=Decimal("310.00"), days_past_due=12)
        record = given.account(Kind.LINE, owner, line["uuid"])
        assert "sd-nav-count" not in servicer.get("/borrowers/").content.decode()
        assert '<span class="sd-nav-count">1<' in servicer.get(record.get_absolute_url()).content.decode()

    def test_the_worker_counts_for_the_navigation_until_somebody_acts(
        self, portal_service: Sandbox, servicer: Browser
    ) -> None:
        first, second = (flagged(portal_service, Kind.LOAN, "700.00", "Late LLC") for _ in range(2))
        run_chores()
        with CaptureQueriesContext(connection) as queries:
            assert '<span class="sd-nav-count">2<' in servicer.get("/borrowers/").content.decode()
        assert not any("collections_promise" in query["sql"] for query in queries.captured_queries)
        snoozed = {"until": str(days_from_now(5)), "reason": "Known"}
        servicer.post(f"/attention/snooze/?item=loan:{first.uuid}", snoozed)
        cache.clear()  # Another process has only the worker's number.
        assert '<span class="sd-nav-count">1<' in servicer.get("/borrowers/").content.decode()
        run_chores()
        second.flagged, second.past_due, second.past_due_rank = False, Decimal(0), None
        second.save()
        cache.clear()
        assert "sd-nav-count" not in servicer.get("/borrowers/").content.decode()

    def test_a_count_is_not_saved_if_someone_acts_while_counting(
        self, portal_service: Sandbox, servicer: Browser
    ) -> None:
        loan = flagged(portal_service, Kind.LOAN, "700.00", "Late LLC")
        state = account_state()

        def act_while_counting() -> int:
            snoozed = {"until": str(days_from_now(5)), "reason": "Known"}
            servicer.post(f"/attention/snooze/?item=loan:{loan.uuid}", snoozed)
            return 5

        save_count(state, act_while_counting)
        assert saved_count(state) is None
        save_count(state, lambda: 5)
        assert saved_count(state) == 5

    def test_settled_writes_need_nobody(
        self, portal_service: Sandbox, viewer: Browser, servicer: Browser
    ) -> None:
        intent = unknown_write(given.borrower(portal_service))
        for state in ("sending", "confirmed", "rejected", "not_sent"):
            WriteIntent.objects.filter(pk=intent.pk).update(state=state)
            assert facts(viewer) == []

    def test_a_write_cut_off_by_a_crash_turns_up_as_unknown(
        self, portal_service: Sandbox, viewer: Browser, servicer: Browser
    ) -> None:
        write = unknown_write(given.borrower(portal_service))
        WriteIntent.objects.update(state="sending", created_at=timezone.now() - timedelta(minutes=5))
        assert facts(viewer) == ["Outcome unknown: an application for $40,000.00"]
        write.refresh_from_db()
        assert write.state == "unknown"

    def test_a_lost_change_is_called_one(
        self, portal_service: Sandbox, viewer: Browser, servicer: Browser
    ) -> None:
        unknown_write(given.borrower(portal_service, first_name="Northwind LLC"))
        WriteIntent.objects.update(method="PUT", label="Northwind LLC")
        assert facts(viewer) == ["Outcome unknown: change to Northwind LLC"]
        assert ">Northwind LLC</a>" not in viewer.get("/").content.decode()

    def test_accounts_come_by_what_is_past_due(self, portal_service: Sandbox, viewer: Browser) -> None:
        flagged(portal_service, Kind.LOAN, None, "Unknown Debt LLC")
        flagged(portal_service, Kind.LOAN, "700.00", "Middle Debt LLC")
        flagged(portal_service, Kind.LINE, "12.50", "Small Debt LLC")
        flagged(portal_service, Kind.LINE, "9000.00", "Large Debt LLC")
        page = viewer.get("/?show=past_due").content.decode()
        names = re.findall(r"(Unknown|Small|Middle|Large) Debt LLC</b></a>", page)
        assert names == ["Unknown", "Large", "Middle", "Small"]

    def test_an_archived_account_needs_nobody(self, portal_service: Sandbox, viewer: Browser) -> None:
        record = flagged(portal_service, Kind.LINE, "310.00", "Acme Farms LLC")
        Record.objects.filter(pk=record.pk).update(archived_at=timezone.now())
        assert facts(viewer) == []

    def test_it_asks_the_service_nothing(self, portal_service: Sandbox, viewer: Browser) -> None:
        flagged(portal_service, Kind.LINE, "310.00", "Acme Farms LLC")
        viewer.get("/")
        assert portal_service.calls == []


class TestNumbers:
    @pytest.mark.parametrize("spell", [str.upper, str.lower, str.capitalize])
    def test_payments_of_seven_days_are_counted_summed_and_proved(
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
        read(owner, Kind.LOAN, loan["uuid"])
        read(owner, Kind.LINE, line["uuid"])
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

    def test_bars_and_table_are_of_the_same_days(self, portal_service: Sandbox, viewer: Browser) -> None:
        owner = given.borrower(portal_service)
        loan = portal_service.world.loan(owner.uuid)
        portal_service.world.repayment(loan["uuid"], amount="50.00")
        read(owner, Kind.LOAN, loan["uuid"])
        page = viewer.get("/").content.decode()
        table = viewer.get("/?numbers=table", headers=htmx("numbers")).content.decode()
        assert 'fill="var(--chart-bar)"' in page
        assert table.lstrip().startswith("<section")
        assert table.count('scope="row"') == 7
        assert "$50.00" in table

    def test_source_and_coverage_are_said(self, portal_service: Sandbox, viewer: Browser) -> None:
        owner = given.borrower(portal_service)
        read(owner, Kind.LOAN, portal_service.world.loan(owner.uuid)["uuid"])
        given.account(Kind.LINE, owner, "0f0e0d0c-0000-4000-8000-000000000009")
        assert "1 of 2 accounts updated in 24 hours" in viewer.get("/").content.decode()


class TestSections:
    def test_recent_borrowers_are_those_i_looked_at(
        self, portal_service: Sandbox, servicer: Browser, viewer: Browser
    ) -> None:
        mine, other = (
            given.borrower(portal_service, first_name="Mine LLC"),
            given.borrower(portal_service, first_name="Other LLC"),
        )
        servicer.get(mine.get_absolute_url())
        viewer.get(other.get_absolute_url())
        assert [record.label for record, _ in servicer.get("/").context["recent"]] == ["Mine LLC"]

    def test_a_draft_is_waiting_for_whoever_began_it(self, servicer: Browser, supervisor: Browser) -> None:
        Wizard(servicer).post("business", BUSINESS, act="save")
        draft = Draft.objects.get(owner=User.objects.get(username="servicer"))
        assert f'href="{draft.get_absolute_url()}"' in servicer.get("/").content.decode()
        assert (
            "drafts and follow-ups appear here" in supervisor.get("/", headers=htmx("work")).content.decode()
        )

    def test_my_open_follow_ups_are_there(self, portal_service: Sandbox, servicer: Browser) -> None:
        owner = given.borrower(portal_service)
        user = User.objects.get(username="servicer")
        for title, done in (("Call Priya", None), ("Done already", timezone.now())):
            FollowUp.objects.create(
                borrower_uuid=owner.uuid, title=title, due=days_from_now(0), owner_id=user.pk, done_at=done
            )
        page = servicer.get("/").content.decode()
        assert "Call Priya" in page
        assert "Done already" not in page

    def test_team_activity_tells_acts_and_no_looks(
        self, portal_service: Sandbox, servicer: Browser, viewer: Browser
    ) -> None:
        owner = given.borrower(portal_service)
        servicer.get(owner.get_absolute_url())
        servicer.post(f"/notes/new/borrower/{owner.uuid}/", {"text": "Prefers mornings"})
        assert [text.split()[0] for _, text in viewer.get("/").context["activity"]] == ["added"]

    def test_the_teams_work_reads_as_sentences_without_sign_ins(self, viewer: Browser) -> None:
        maya = Actor(name="Maya Chen", role="servicer")
        append(maya, "lookup.archive", subject_label="Northwind LLC")
        append(maya, "accounts.sign_in")
        activity = viewer.get("/", headers=htmx("activity")).content.decode()
        assert "Maya Chen archived Northwind LLC" in activity
        assert "signed in" not in activity

    @pytest.mark.parametrize("section", ["home-health", "attention", "numbers", "work", "activity"])
    def test_each_refreshes_by_itself(self, viewer: Browser, section: str) -> None:
        fragment = viewer.get("/", headers=htmx(section)).content.decode()
        assert fragment.lstrip().startswith("<section")
        assert f'id="{section}"' in fragment.partition(">")[0]
        assert "data-refresh" in fragment.partition(">")[0]
        assert "<html" not in fragment

    def test_with_the_service_down_the_page_stands_and_says_so(
        self, portal_service: Sandbox, viewer: Browser
    ) -> None:
        owner = given.borrower(portal_service)
        line = read(
            owner, Kind.LINE, portal_service.world.line(owner.uuid, past_due_balance=Decimal("5"))["uuid"]
        )
        RemoteCall.objects.update(at=timezone.now() - timedelta(minutes=5))
        portal_service.fail_next("*", times=10, status=503)
        Record.objects.update(asked_at=None)
        assert not read_live(ME, line)
        cache.clear()
        with no_calls():
            page = viewer.get("/").content.decode()
        assert "Statements failing since" in page
        assert "$5.00 past due" in page

    def test_nobody_signed_in_sees_nothing(self, anonymous: Browser) -> None:
        assert "/sign-in/" in anonymous.get("/")["Location"]
