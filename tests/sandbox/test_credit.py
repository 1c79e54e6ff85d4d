"""Applications, loans, lines and repayments through the interface."""

from decimal import Decimal
from typing import Any

import pytest

from servicing.sandbox import Sandbox
from servicing.sandbox.wire import loads
from tests.sandbox import interface
from tests.sandbox.caller import Caller


@pytest.fixture
def user(service: Sandbox) -> str:
    return str(service.world.borrower()["uuid"])


def get(caller: Caller, path: str) -> Any:
    """Get an answer, parsed with exact numbers."""
    return loads(caller.get(path).content)


# Applications


def test_an_application_returns_its_offers_and_decision(caller: Caller, user: str) -> None:
    application = loads(caller.post(f"/v1/users/{user}/loans/applications", {"amount": 25000}).content)
    assert set(application) == interface.APPLICATION
    assert application["status"] == {"decision": "APPROVED", "details": None}
    assert [offer["term"] for offer in application["offers"]] == [12, 24, 36, 60]
    assert set(application["offers"][0]) == interface.OFFER


def test_an_oversized_application_is_rejected_with_reasons(caller: Caller, user: str) -> None:
    path = f"/v1/users/{user}/loans/applications"
    application = caller.post(path, {"amount": 5_000_000.01}).json()
    assert application["status"]["decision"] == "REJECTED"
    assert application["status"]["details"][0].startswith(
        "The requested amount is above the limit of 5,000,000"
    )
    assert application["offers"] == []


@pytest.mark.parametrize("amount", [0, -1, "25000", True, None, [1]])
def test_an_amount_must_be_a_positive_number(caller: Caller, user: str, amount: object) -> None:
    answer = caller.post(f"/v1/users/{user}/loans/applications", {"amount": amount})
    assert (answer.status_code, answer.json()["message"].split()[0]) == (400, "amount")


def test_an_application_without_an_amount_is_rejected(service: Sandbox, caller: Caller, user: str) -> None:
    answer = caller.post(f"/v1/users/{user}/loans/applications", {})
    assert (answer.status_code, answer.json()) == (400, {"message": "amount is required"})
    assert service.world.store.all("loan_application") == []


def test_an_extreme_amount_causes_no_error(caller: Caller, user: str) -> None:
    path = f"/v1/users/{user}/loans/applications"
    for text in (b'{"amount": 1e400}', b'{"amount": 1e-400}', b'{"amount": 0.01}'):
        answer = caller.send("POST", path, text, {"Content-Type": "application/json"})
        assert answer.status_code == 200


def test_only_line_applications_can_be_read(service: Sandbox, caller: Caller, user: str) -> None:
    loan = service.world.loan_application(user, amount=9000)
    line = service.world.line_application(user, amount="9000.00")
    path = f"/v1/users/{user}/loc/applications/"
    assert caller.get(path + loan["uuid"]).status_code == 404
    assert get(caller, path + line["uuid"]) == line
    assert line["product"] == "BUILD_CREDIT"


def test_an_accepted_offer_becomes_a_loan_with_its_uuid(service: Sandbox, caller: Caller, user: str) -> None:
    application = caller.post(f"/v1/users/{user}/loans/applications", {"amount": 12000.5}).json()
    offer = application["offers"][1]
    service.world.accept_offer(application["uuid"], offer["uuid"])
    loan = caller.get(f"/v1/users/{user}/loan/{offer['uuid']}").json()
    assert (loan["amount"], loan["apr"], len(loan["installments"])) == (12000.5, offer["apr"], 24)


def test_an_accepted_line_offer_becomes_a_line(service: Sandbox, caller: Caller, user: str) -> None:
    application = service.world.line_application(user, amount=5000)
    uuid = application["offers"][0]["uuid"]
    service.world.accept_offer(application["uuid"], uuid)
    assert caller.get(f"/v1/users/{user}/loc/{uuid}/statements").json()["credit_limit"] == 5000


# Loans


def test_a_loan_is_returned_as_created(service: Sandbox, caller: Caller, user: str) -> None:
    loan = service.world.loan(user, amount="12000.00", paid=3, risk_grade="B", surprise={"x": 1})
    assert get(caller, f"/v1/users/{user}/loan/{loan['uuid']}") == loan
    assert set(loan) == {*interface.LOAN, "surprise"}
    assert loan["state"] == "OR"
    assert [row["status"] for row in loan["installments"]] == ["PAID"] * 3 + ["SCHEDULED"] * 9


def test_installments_have_two_shapes_and_may_be_missing(service: Sandbox, user: str) -> None:
    snake = service.world.loan(user)["installments"][0]
    pascal = service.world.loan(user, shape="pascal")["installments"][0]
    assert set(snake) == interface.SNAKE_INSTALLMENT
    assert set(pascal) == interface.PASCAL_INSTALLMENT
    assert service.world.loan(user, installments=0)["installments"] == []


# Lines


def test_an_undrawn_line_has_zero_balances(service: Sandbox, caller: Caller, user: str) -> None:
    line = service.world.line(user, limit="7500.00")
    statement = get(caller, f"/v1/users/{user}/loc/{line['uuid']}/statements")
    assert statement == {name: value for name, value in line.items() if name != "uuid"}
    assert set(statement) == interface.STATEMENT
    assert statement["payment_due_date"] is None
    assert {statement[name] for name in statement if name.endswith("balance")} == {Decimal("0.00")}
    assert statement["available_credit"] == statement["current_credit"] == Decimal("7500.00")


def test_statements_are_oldest_first_with_links_to_the_sandbox(
    service: Sandbox, caller: Caller, user: str
) -> None:
    line = service.world.line(user, drawn="900.00")["uuid"]
    for day in ("2026-01-31", "2026-02-28"):
        service.world.statement(line, day)
    statements = caller.get(f"/v1/users/{user}/loc/{line}/statements").json()["statements"]
    assert [list(statement) for statement in statements] == [["billing_date", "url"]] * 2
    assert [statement["billing_date"] for statement in statements] == ["2026-01-31", "2026-02-28"]
    assert all(statement["url"].startswith(f"{service.url}/documents/") for statement in statements)


# Repayments


def test_repayments_of_loans_and_lines_are_a_bare_list(service: Sandbox, caller: Caller, user: str) -> None:
    loan, line = service.world.loan(user)["uuid"], service.world.line(user)["uuid"]
    of_loan = [service.world.repayment(loan, amount=amount) for amount in ("0.10", "99.99")]
    of_line = [service.world.repayment(line, status="SCHEDULED", payment_type=None)]
    assert get(caller, f"/v1/users/{user}/loans/{loan}/payments") == of_loan
    assert get(caller, f"/v1/users/{user}/loc/{line}/payments") == of_line
    assert set(of_loan[0]) == set(of_line[0]) == interface.REPAYMENT
    assert (of_loan[0]["product"], of_line[0]["product"]) == ("LOAN", "LOC")


def test_large_amounts_keep_every_digit(service: Sandbox, caller: Caller, user: str) -> None:
    loan = service.world.loan(user)["uuid"]
    service.world.repayment(loan, principal=Decimal("12345678901234567.10"))
    assert (
        b'"principal":12345678901234567.10' in caller.get(f"/v1/users/{user}/loans/{loan}/payments").content
    )
