"""The sandbox's world: its builders, payments that succeed or are returned, and passing days."""

from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from servicing.sandbox import Sandbox, World
from tests.sandbox import interface

TODAY = date(2026, 5, 20)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    sandbox = Sandbox(tmp_path / "s.db", today=TODAY)
    yield sandbox.world
    sandbox.close()


@pytest.fixture
def user(world: World) -> str:
    return str(world.borrower()["uuid"])


def line_body(world: World, uuid: str) -> dict[str, Any]:
    return world.account(uuid).body


def events(world: World) -> list[str]:
    return [message["event"] for message in world.messages()][::-1]


def test_a_frozen_line_keeps_zero_available_credit(world: World, user: str) -> None:
    line = world.line(user, limit="1000.00", drawn="300.00")["uuid"]
    world.freeze(line)
    world.advance(40)
    body = line_body(world, line)
    assert (body["available_credit"], body["current_credit"] > 0) == (0, True)


def test_hidden_due_dates_stay_hidden_as_days_pass(world: World, user: str) -> None:
    for shape, field in (("snake", "due_date"), ("pascal", "PaymentDate")):
        loan = world.loan(user, shape=shape, installments=3, opened=TODAY)["uuid"]
        world.hide_due_dates(loan, start=2)
        world.advance(1)
        assert [row[field] is None for row in world.account(loan).body["installments"]] == [False, True, True]


# Builders


def test_builders_return_the_interfaces_fields(world: World, user: str) -> None:
    assert set(world.user(user)) == interface.BUSINESS
    assert set(world.user(user)["key_people"][0]) == interface.KEY_PERSON
    assert set(world.individual()) == interface.PERSON
    assert set(world.line_application(user)) == interface.APPLICATION
    assert set(world.message("a", {})) == interface.MESSAGE


def test_overrides_replace_and_add_fields(world: World) -> None:
    people = [{"title": "OWNER"}, {"ssn": "222222222"}]
    user = world.borrower(first_name="3M", website="x", novelty=[1], EIN="111111111", key_people=people)
    assert (user["first_name"], user["website"], user["novelty"]) == ("3M", "x", [1])
    assert [world.received_ssn(person["uuid"]) for person in user["key_people"]] == [None, "222222222"]
    assert world.received_ein(user["uuid"]) == "111111111"


def test_any_field_of_a_loan_can_be_amended(world: World, user: str) -> None:
    loan = world.loan(user)["uuid"]
    world.amend(loan, installments=[{"Unheard": Decimal("1.50")}], status="PAID_OFF")
    body = world.account(loan).body
    assert (body["installments"], body["status"]) == ([{"Unheard": Decimal("1.50")}], "PAID_OFF")


def test_an_individual_may_have_no_user_type(world: World) -> None:
    person = world.individual(user_type=None, ssn="333333333")
    assert "user_type" not in world.user(person["uuid"])
    assert world.received_ssn(person["uuid"]) == "333333333"


def test_an_old_unpaid_loan_is_delinquent(world: World, user: str) -> None:
    loan = world.loan(user, opened=TODAY - timedelta(days=100), paid=2)
    assert loan["delinquent"] is True
    assert [row["status"] for row in loan["installments"][:4]] == ["PAID", "PAID", "PAST_DUE", "SCHEDULED"]
    assert world.loan(user, paid=2)["delinquent"] is False


def test_a_record_needs_an_existing_owner(world: World) -> None:
    for build in (world.loan, world.line, world.line_application, world.repayment, world.draw):
        with pytest.raises(Exception, match="not found"):
            build("nobody", amount=1)  # type: ignore[operator]


# Payments


def test_a_completed_payment_pays_the_next_installment(world: World, user: str) -> None:
    loan = world.loan(user, amount="1000.00", interest_rate=12, installments=3)["uuid"]
    payment = world.settle_payment(world.repayment(loan, amount="340.02", status="SCHEDULED")["uuid"])
    assert (payment["interest"], payment["principal"], payment["ending_balance"]) == (
        Decimal("10.00"),
        Decimal("330.02"),
        Decimal("669.98"),
    )
    assert world.account(loan).body["installments"][0]["paid_on"] == "2026-05-20"
    (message,) = world.messages()
    assert message["event"] == "payment.succeeded"
    assert message["payload"]["initiation_date"].startswith("2026-05-20 ")
    assert payment["initiation_date"] is None


def test_a_returned_payment_reopens_its_installment(world: World, user: str) -> None:
    loan = world.loan(user, amount="1000.00", interest_rate=12, installments=3)["uuid"]
    payment = world.repayment(loan, amount="340.02", status="SCHEDULED")["uuid"]
    world.settle_payment(payment)
    returned = world.bounce_payment(payment, "R01 - Insufficient funds")
    assert (returned["status"], returned["payment_type"]) == ("FAILED_AFTER_SUCCESS", "RETURNED")
    assert returned["error_description"] == "R01 - Insufficient funds"
    assert world.account(loan).body["installments"][0]["status"] == "SCHEDULED"
    assert events(world) == ["payment.succeeded", "payment.failed_after_success"]


def test_a_returned_partial_payment_changes_no_installment(world: World, user: str) -> None:
    loan = world.loan(user, paid=1)["uuid"]
    payment = world.repayment(loan, amount="50.00", status="SCHEDULED")["uuid"]
    assert world.settle_payment(payment)["interest"] == Decimal("50.00")
    world.bounce_payment(payment)
    assert [row["status"] for row in world.account(loan).body["installments"][:2]] == ["PAID", "SCHEDULED"]


def test_a_payment_on_a_loan_without_a_schedule_goes_to_suspense(world: World, user: str) -> None:
    loan = world.loan(user, installments=0)["uuid"]
    payment = world.settle_payment(world.repayment(loan, amount="75.00", status="SCHEDULED")["uuid"])
    assert (payment["principal"], payment["suspense"], payment["ending_balance"]) == (0, 75, 12000)


def test_a_failed_payment_leaves_the_balance_unchanged(world: World, user: str) -> None:
    line = world.line(user, drawn="500.00")["uuid"]
    failed = world.bounce_payment(world.repayment(line, status="SCHEDULED")["uuid"])
    assert (failed["status"], failed["payment_type"]) == ("FAILED", "SINGLE_PAYMENT")
    assert line_body(world, line)["principal_balance"] == Decimal("500.00")
    assert events(world) == ["payment.failed"]


def test_a_payment_on_a_line_lowers_balance_and_amount_due(world: World, user: str) -> None:
    line = world.line(user, limit=1000, drawn=600, opened=TODAY - timedelta(days=40), autopay=False)["uuid"]
    world.advance(1)
    before = line_body(world, line)
    world.settle_payment(
        world.repayment(line, amount=before["payment_amount_due"], status="SCHEDULED")["uuid"]
    )
    after = line_body(world, line)
    assert after["payoff_balance"] == before["payoff_balance"] - before["payment_amount_due"]
    assert (after["payment_amount_due"], after["payment_due_date"]) == (Decimal("0.00"), None)
    assert after["available_credit"] > before["available_credit"]


def test_a_returned_payment_on_a_line_restores_the_balance(world: World, user: str) -> None:
    line = world.line(user, drawn=300)["uuid"]
    payment = world.repayment(line, amount=350, status="SCHEDULED")["uuid"]
    world.settle_payment(payment)
    assert line_body(world, line)["suspense_balance"] == 50
    world.bounce_payment(payment)
    restored = line_body(world, line)
    assert (restored["principal_balance"], restored["suspense_balance"]) == (300, 0)
    assert restored["payment_amount_due"] == 350


def test_a_payment_can_be_completed_only_once(world: World, user: str) -> None:
    payment = world.repayment(world.loan(user)["uuid"], status="SUCCEEDED")["uuid"]
    with pytest.raises(ValueError, match="SUCCEEDED cannot succeed"):
        world.settle_payment(payment)
    assert world.messages() == []


# Days


def test_advancing_days_moves_the_services_date(world: World) -> None:
    world.advance(30)
    assert world.clock.today() == TODAY + timedelta(days=30)
    assert world.message("a", {})["created_at"].startswith("2026-06-19 ")


def test_a_loan_with_autopay_is_paid_automatically(world: World, user: str) -> None:
    loan = world.loan(user, opened=TODAY - timedelta(days=10))["uuid"]
    world.advance(95)
    statuses = [row["status"] for row in world.account(loan).body["installments"]]
    assert statuses == ["PAID"] * 3 + ["SCHEDULED"] * 9
    payments = [payment.body["status"] for payment in world.store.all("repayment", owner=loan)]
    assert payments == ["SUCCEEDED"] * 3 + ["SCHEDULED"]
    assert events(world)[:2] == ["payment.scheduled", "payment.succeeded"]


def test_a_loan_without_autopay_becomes_delinquent(world: World, user: str) -> None:
    loan = world.loan(user, autopay_enabled=False)["uuid"]
    world.advance(31)
    assert world.account(loan).body["delinquent"] is False
    world.advance(1)
    assert world.account(loan).body["delinquent"] is True


def test_a_line_with_autopay_is_billed_and_paid_each_month(world: World, user: str) -> None:
    line = world.line(user, drawn="2000.00", rate="18.25")["uuid"]
    world.advance(31)
    billed = line_body(world, line)
    assert billed["interest_balance"] == Decimal("31.00")
    assert billed["payment_amount_due"] == Decimal("71.00")
    assert (billed["payment_due_date"], billed["next_billing_date"]) == ("2026-06-30", "2026-07-20")
    world.advance(10)
    assert line_body(world, line)["payment_amount_due"] == 0
    assert [paper.body["billing_date"] for paper in world.store.all("statement", owner=line)] == [
        "2026-06-20"
    ]


def test_an_unpaid_line_becomes_past_due_and_loses_available_credit(world: World, user: str) -> None:
    line = world.line(user, drawn="2000.00", autopay=False)["uuid"]
    world.advance(31 + 10 + 31)
    body = line_body(world, line)
    assert body["days_past_due"] == 31
    assert body["past_due_balance"] == body["payment_amount_due"] == Decimal("143.48")
    assert (body["available_credit"], body["current_credit"]) == (0, 8000)


def test_a_bill_is_past_due_from_the_day_after_its_due_date(world: World, user: str) -> None:
    line = world.line(user, drawn="2000.00", autopay=False)["uuid"]
    world.advance(31 + 10)
    body = line_body(world, line)
    assert (body["payment_due_date"], body["past_due_balance"]) == (str(world.clock.today()), 0)
    world.advance(1)
    body = line_body(world, line)
    assert body["past_due_balance"] == body["payment_amount_due"] > 0


def test_an_unused_line_has_no_payment_due(world: World, user: str) -> None:
    line = world.line(user)["uuid"]
    world.advance(65)
    assert line_body(world, line)["payment_due_date"] is None
    assert len(world.store.all("statement", owner=line)) == 2


@pytest.mark.slow
def test_some_payments_fail_or_are_returned_and_are_retried(world: World, user: str) -> None:
    loan = world.loan(user, installments=36)["uuid"]
    world.advance(365 * 3)
    statuses = [payment.body["status"] for payment in world.store.all("repayment", owner=loan)]
    assert statuses.count("FAILED") == 2
    assert statuses.count("FAILED_AFTER_SUCCESS") == 1
    assert statuses.count("SUCCEEDED") == 35
    assert set(events(world)) == {
        "payment.scheduled",
        "payment.succeeded",
        "payment.failed",
        "payment.failed_after_success",
    }


def test_each_statement_opens_where_the_last_one_closed(world: World, user: str) -> None:
    line = world.line(user, drawn="2000.00")["uuid"]
    world.advance(45)
    world.draw(line, "150.00")
    world.advance(55)
    first, second, third = (paper.private for paper in world.store.all("statement", owner=line))
    assert second["opening_balance"] == first["closing_balance"]
    assert third["opening_balance"] == second["closing_balance"]
    assert second["period_start"] == first["billing_date"]
    assert [entry["note"] for entry in second["activity"]] == [
        "Payment, thank you",
        "Advance",
        "Interest, 30 days",
    ]
    assert second["activity"][-1]["balance"] == second["closing_balance"]
