"""Tests of the registry: saved answers, snapshots, search, lists and imported files."""

from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from importlib import import_module
from typing import Any

import pytest
from django.apps import apps
from django.core.management import call_command
from django.test import Client as Browser
from django.utils import timezone

import servicing
from portal.audit.models import Actor
from portal.gateway.reading import account_copies, read_live
from portal.lookup.imports import import_ids, import_profiles
from portal.messaging.models import Message
from portal.records import store
from portal.records.models import (
    Account,
    Answer,
    Borrower,
    KeyPerson,
    Kind,
    Repayment,
    Snapshot,
    Source,
)
from portal.records.query import parse_query
from portal.records.repayments import matching_repayments
from portal.records.rollup import totals_of
from portal.records.rows import active_records
from portal.records.search import find_by_text
from portal.ui import wording
from servicing import Loan, Statement, codec
from servicing.sandbox import Sandbox
from servicing.sandbox.wire import dumps
from tests import given

pytestmark = [pytest.mark.postgres, pytest.mark.django_db]
OWNER = "0f0e0d0c-0000-4000-8000-000000000001"
LINE = "0f0e0d0c-0000-4000-8000-000000000002"
TODAY = date(2026, 11, 27)


def find_borrowers(text: str) -> list[str]:
    return [record.label for record in find_by_text(Kind.BORROWER, text)]


class TestRebuild:
    def test_only_what_answers_say_is_written_again(self, portal_service: Sandbox) -> None:
        owner = given.borrower(portal_service)
        loan, line = given.loan(portal_service, owner, amount="1200.00"), given.line(portal_service, owner)
        portal_service.world.repayment(
            loan.uuid, amount="40", status="FAILED", error_description="R01 - No funds"
        )
        for copy in (*account_copies(loan), *account_copies(line)):
            assert read_live(Actor.system("test"), copy)
        Account.objects.filter(pk=line.pk).update(
            archived_at=timezone.now(), label="Their line", search_text="\ntheir line\n", borrower_uuid=""
        )
        models = (Borrower, KeyPerson, Account, Repayment, Answer, Snapshot)

        def stored() -> dict[tuple[str, int, str], Any]:
            return {
                (model.__name__, row["id"], name): value
                for model in models
                for row in model._default_manager.values()
                for name, value in row.items()
            }

        before = stored()
        call_command("rebuild_records")
        assert stored() == before
        Borrower.objects.update(phone="", folded_name="", search_text="")
        KeyPerson.objects.update(name="", title="")
        Account.objects.filter(pk=loan.pk).update(past_due=5, status="", rate=None, figures_good_through=None)
        Repayment.objects.update(code="", amount=None, has_failed=False)
        call_command("rebuild_records")
        assert {
            name: (value, before[name]) for name, value in stored().items() if value != before[name]
        } == {}


class TestStore:
    def test_a_different_answer_saves_a_snapshot_of_the_last_one(self, sandbox: Sandbox) -> None:
        user = sandbox.world.borrower()
        given.save_answer(user)
        record = given.save_answer(user | {"email": "new@northwind.example"})
        assert record.email == "new@northwind.example"
        assert [codec.decode(servicing.Borrower, s.body).email for s in record.answer.snapshots.all()] == [
            user["email"]
        ]

    def test_an_identical_answer_updates_only_its_age(self, sandbox: Sandbox) -> None:
        user = sandbox.world.borrower()
        before = given.save_answer(user)
        after = given.save_answer(user)
        assert after.answer_at > before.answer_at
        assert Borrower.objects.get(pk=after.pk).updated_at == before.updated_at

    def test_the_first_and_last_time_of_each_answer_are_kept(self, sandbox: Sandbox) -> None:
        user = sandbox.world.borrower()
        one, two = (
            store.observe(codec.decode(servicing.Borrower, dumps(user | {"email": email})))
            for email in ("one@northwind.example", "two@northwind.example")
        )
        days = [timezone.now() - timedelta(days=days) for days in (5, 4, 3, 2, 1)]
        for answer, at in zip((one, one, two, two, one), days, strict=True):
            (record, *_) = store.save(answer, source=Source.SERVICE, at=at)
        assert (record.answer.first_at, record.answer_at) == (days[4], days[4])
        told = [(each.first_at, each.last_at) for each in record.answer.snapshots.order_by("last_at")]
        assert told == [(days[0], days[1]), (days[2], days[3])]

    def test_importing_known_data_leaves_updated_at_unchanged(self, sandbox: Sandbox) -> None:
        user = sandbox.world.borrower(key_people=[])
        answer = store.observe(codec.decode(servicing.Borrower, dumps(user)))
        loan = store.Observation(kind=Kind.LOAN, uuid=LINE, borrower_uuid=user["uuid"])
        store.save([*answer, loan], source=Source.FILE)
        written = dict(Account.objects.values_list("uuid", "updated_at"))
        after = timezone.now()
        store.save([*answer, loan], source=Source.FILE, at=after)
        assert dict(Account.objects.values_list("uuid", "updated_at")) == written
        assert Borrower.objects.get().answer_at == after
        assert Borrower.objects.get().checked_at is None
        store.save([replace(loan, label="Oven")], source=Source.FILE)
        labeled = Account.objects.get(kind=Kind.LOAN)
        assert (labeled.label, labeled.updated_at > written[LINE]) == ("Oven", True)
        assert find_by_text(Kind.LOAN, "oven").get() == labeled

    def test_an_identical_answer_saves_no_snapshot(self, sandbox: Sandbox) -> None:
        user = sandbox.world.borrower()
        given.save_answer(user)
        assert not given.save_answer(user).answer.snapshots.exists()

    def test_an_older_file_does_not_replace_a_newer_answer(self, sandbox: Sandbox) -> None:
        user = sandbox.world.borrower(email="now@northwind.example")
        given.save_answer(user)
        old = codec.decode(servicing.Borrower, dumps(user | {"email": "then@northwind.example"}))
        yesterday = timezone.now() - timedelta(days=1)
        (record, *_) = store.save(store.observe(old), source=Source.FILE, at=yesterday)
        assert store.last_answer(record, servicing.Borrower).email == "now@northwind.example"
        assert record.answer.snapshots.get().source == Source.FILE

    def test_key_people_are_saved_as_records(self, sandbox: Sandbox) -> None:
        owner = given.borrower(sandbox, key_people=[{"first_name": "Elena"}, {"first_name": "Priya"}])
        people = KeyPerson.objects.filter(borrower_uuid=owner.uuid)
        assert sorted(person.label.split()[0] for person in people) == ["Elena", "Priya"]

    def test_money_keeps_every_digit(self) -> None:
        statement = codec.decode(
            Statement, '{"credit_limit": 20000.10, "past_due_balance": 0.1, "days_past_due": 3}'
        )
        items = store.observe(statement, uuid=LINE, borrower_uuid=OWNER)
        (record,) = store.save(items, source=Source.SERVICE)
        assert store.last_answer(record, Statement).past_due_balance == Decimal("0.1")
        assert record.is_past_due
        assert record.past_due == Decimal("0.1")

    def test_a_loan_has_its_rate_and_first_unpaid_due_date(self) -> None:
        rows = [{"due_date": "2026-10-01", "paid_on": "2026-10-02"}, {"due_date": "2026-12-01"}]
        loan = Loan(uuid="l-1", interest_rate=Decimal("9.1234"), installments=tuple(rows))
        (record,) = store.save(store.observe(loan, borrower_uuid=OWNER), source=Source.SERVICE)
        record.refresh_from_db()
        assert (record.rate, record.next_due_on) == (Decimal("9.1234"), date(2026, 12, 1))

    @pytest.mark.parametrize("told", [None, Decimal(0), Decimal("12.5")])
    def test_past_due_is_zero_only_if_the_service_reports_zero(
        self, sandbox: Sandbox, told: Decimal | None
    ) -> None:
        owner = given.borrower(sandbox)
        items = store.observe(Statement(past_due_balance=told), uuid=LINE, borrower_uuid=owner.uuid)
        store.save(items, source=Source.SERVICE)
        owner.refresh_from_db()
        assert owner.past_due == told

    def test_repayments_are_saved_under_their_account(self) -> None:
        text = b'[{"uuid": "p1", "amount": 310.00, "effective_date": "2026-11-17", "ach_id": "ach-77"}]'
        observed = store.records_in_answer(
            "repayments.of_loan",
            codec.decode_list(servicing.Repayment, text),
            {"borrower_id": OWNER, "loan_id": LINE},
        )
        loan = Account.objects.create(kind=Kind.LOAN, uuid=LINE)
        assert store.save(observed, source=Source.SERVICE) == []
        repayment = Repayment.objects.get()
        assert (repayment.account, repayment.borrower_uuid, repayment.ach_id) == (loan, OWNER, "ach77")
        said = Answer.objects.get(kind=Kind.LOAN_REPAYMENTS, uuid=LINE)
        assert [one.ach_id for one in store.last_list(said, servicing.Repayment)] == ["ach-77"]
        assert Repayment.objects.get(matching_repayments(parse_query("ACH-77"))) == repayment

    def test_only_changed_repayments_are_written(self) -> None:
        def save(*rows: dict[str, Any]) -> dict[str, Repayment]:
            answer = codec.decode_list(servicing.Repayment, dumps(list(rows)))
            items = store.records_in_answer(
                "repayments.of_loan", answer, {"borrower_id": OWNER, "loan_id": LINE}
            )
            store.save(items, source=Source.SERVICE)
            return {one.uuid: one for one in Repayment.objects.all()}

        scheduled = {"status": "SCHEDULED", "error_description": "Held"}
        first = save({"uuid": "p1"} | scheduled, {"uuid": "p2"} | scheduled)
        second = save({"uuid": "p1"} | scheduled, {"uuid": "p2", "status": "SUCCEEDED"})
        assert second["p1"].updated_at == first["p1"].updated_at
        assert second["p1"].last_listed_at == second["p2"].last_listed_at
        assert second["p2"].last_listed_at > first["p2"].last_listed_at
        third = save({"uuid": "p2", "status": "FAILED_AFTER_SUCCESS"})
        assert third["p1"].last_listed_at == second["p1"].last_listed_at
        changes = [(one.old, one.old_reason, one.new) for one in third["p2"].statuses.all()]
        assert changes == [
            ("SCHEDULED", "Held", "SUCCEEDED"),
            ("SUCCEEDED", "", "FAILED_AFTER_SUCCESS"),
        ]
        assert third["p2"].returned_at == third["p2"].last_listed_at
        assert third["p2"].first_seen_at == first["p2"].first_seen_at


class TestSpelling:
    """An earlier version saved values with the service's spelling instead of the interface's."""

    OLD, NEW = ("Loc", "Succeeded"), ("LOC", "SUCCEEDED")

    def test_the_migration_respells_only_known_values(self) -> None:
        for number, (product, status) in enumerate([self.OLD, self.NEW, ("Odd", "In review")]):
            Message.objects.create(
                id=number,
                uuid=f"m-{number}",
                product=product,
                status=status,
                payment_status=status,
                day=TODAY,
            )
        import_module("portal.messaging.migrations.0002_known_spelling").respell(apps, None)
        columns = Message.objects.order_by("uuid").values_list("product", "status", "payment_status")
        assert list(columns) == [("LOC", "SUCCEEDED", "SUCCEEDED")] * 2 + [("Odd", "In review", "In review")]

    def test_a_filter_accepts_the_old_spelling(self, viewer: Browser) -> None:
        Repayment.objects.create(uuid="r-1", status="SUCCEEDED")
        assert viewer.get("/repayments/?status=Succeeded").context["listing"].total == 1


class TestSearch:
    @pytest.mark.parametrize(
        "typed",
        [
            *(
                "(512) 555-0143",
                "5125550143",
                "+1 512-555-0143",
                "512.555.0143",
                "1 512 555 0143",
                "555-0143",
            ),
            *("001 512 555 0143", "0015125550143", "011 1 512-555-0143", "+1 512/555/0143", "(512)555–0143"),
        ],
    )
    def test_a_phone_is_found_in_any_notation(self, sandbox: Sandbox, typed: str) -> None:
        given.borrower(sandbox, first_name="Northwind Baking Co LLC", phone="5125550143")
        assert find_borrowers(typed) == ["Northwind Baking Co LLC"]

    @pytest.mark.parametrize("typed", ["northwind", "BAKING co", "ap@north", "eugene", "ortiz"])
    def test_name_email_city_and_key_people_are_found(self, sandbox: Sandbox, typed: str) -> None:
        given.borrower(
            sandbox,
            first_name="Northwind Baking Co LLC",
            email="ap@northwind.example",
            key_people=[{"first_name": "Elena", "last_name": "Ortiz"}],
        )
        assert find_borrowers(typed) == ["Northwind Baking Co LLC"]

    def test_a_uuid_in_pasted_text_finds_its_borrower(self, sandbox: Sandbox) -> None:
        owner = given.borrower(sandbox)
        assert find_borrowers(f"see https://x.example/users/{owner.uuid.upper()}?x=1 please") == [owner.label]

    @pytest.mark.parametrize("typed", ["%", "_", "\\", "'; --", "x" * 10_000])
    def test_hostile_text_matches_nothing(self, sandbox: Sandbox, typed: str) -> None:
        given.borrower(sandbox)
        assert find_borrowers(typed) == []

    @pytest.mark.parametrize("typed", ["\0", "\ud800", " \t"])
    def test_text_without_storable_characters_filters_nothing(self, sandbox: Sandbox, typed: str) -> None:
        owner = given.borrower(sandbox)
        assert find_borrowers(typed) == [owner.label]


class TestLists:
    def test_archived_records_are_not_active(self, sandbox: Sandbox) -> None:
        Borrower.objects.filter(pk=given.borrower(sandbox).pk).update(archived_at=timezone.now())
        assert not active_records(Kind.BORROWER).exists()

    def test_borrower_totals_count_accounts_and_past_due(self, sandbox: Sandbox) -> None:
        owner = given.borrower(sandbox)
        given.account(Kind.LOAN, owner, "loan-1")
        line = given.account(Kind.LINE, owner, "line-1")
        Account.objects.filter(pk=line.pk).update(past_due=Decimal("310.00"))
        totals = totals_of([owner.uuid])[owner.uuid]
        assert (totals.loans, totals.lines, totals.past_due.known) == (1, 1, Decimal("310"))
        assert wording.past_due(totals.past_due) == "$310.00, plus 1 account without a figure"


class TestImport:
    HEAD = "kind,uuid,borrower_uuid,label\n"

    def test_each_rejected_line_has_a_reason(self) -> None:
        text = f"{self.HEAD}borrower,{OWNER},,Acme\nship,x,{OWNER},\nloan,l 1,{OWNER},\nloan,l2,,\nline,l3,{OWNER},"
        report = import_ids(text.splitlines(), by="test")
        assert report.taken == 2
        assert [number for number, _ in report.refused] == [3, 4, 5]
        assert "'ship' is not one of borrower" in report.refused[0][1]

    def test_a_wrong_header_is_reported(self) -> None:
        assert import_ids(["uuid,kind"], by="test").refused == [
            (1, "the first line must be kind,uuid,borrower_uuid,label")
        ]

    def test_a_record_of_another_borrower_is_rejected(self) -> None:
        first = f"{self.HEAD}loan,l1,{OWNER},"
        second = f"{self.HEAD}loan,l1,other-owner,"
        import_ids(first.splitlines(), by="test")
        assert import_ids(second.splitlines(), by="test").refused == [
            (2, "l1 is already on file under another borrower")
        ]

    def test_imported_profiles_have_the_file_source(self, sandbox: Sandbox) -> None:
        line = dumps(sandbox.world.borrower(first_name="Acme Farms LLC")).decode()
        report = import_profiles([line, "", "{", "[]", '{"first_name": "no uuid"}'], by="test")
        assert (report.taken, [number for number, _ in report.refused]) == (1, [3, 4, 5])
        record = Borrower.objects.get()
        assert (record.label, record.answer.source) == ("Acme Farms LLC", Source.FILE)

    def test_importing_twice_changes_nothing(self, sandbox: Sandbox) -> None:
        line = dumps(sandbox.world.borrower()).decode()
        import_profiles([line], by="test")
        before = list(Account.objects.order_by("id").values_list("uuid", "answer__body"))
        import_profiles([line], by="test")
        assert list(Account.objects.order_by("id").values_list("uuid", "answer__body")) == before
