"""Listing the repayments on loans and on lines of credit."""

from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from servicing import Client, NotFound
from servicing.sandbox import Sandbox


@pytest.fixture
def borrower_id(sandbox: Sandbox) -> str:
    return str(sandbox.world.borrower()["uuid"])


@pytest.fixture
def loan_id(sandbox: Sandbox, borrower_id: str) -> str:
    return str(sandbox.world.loan(borrower_id)["uuid"])


def test_repayments_on_a_loan_are_listed(
    service_client: Client, sandbox: Sandbox, borrower_id: str, loan_id: str
) -> None:
    known = sandbox.world.repayment(loan_id, amount="250.10", effective_date=date(2026, 3, 8))
    (repayment,) = service_client.repayments.of_loan(borrower_id, loan_id)

    assert sandbox.calls[-1].path == f"/v1/users/{borrower_id}/loans/{loan_id}/payments"
    assert repayment.raw == known
    assert (repayment.amount, repayment.effective_date) == (Decimal("250.10"), date(2026, 3, 8))
    assert (repayment.status, repayment.issues, repayment.extra) == ("SUCCEEDED", (), {})


def test_repayments_on_a_line_are_listed(service_client: Client, sandbox: Sandbox, borrower_id: str) -> None:
    line = sandbox.world.line(borrower_id)
    sandbox.world.repayment(line["uuid"], status="FAILED_AFTER_SUCCESS", payment_type="RETURNED")
    (repayment,) = service_client.repayments.of_line(borrower_id, line["uuid"])

    assert (repayment.status, repayment.payment_type) == ("FAILED_AFTER_SUCCESS", "RETURNED")


def test_a_loan_without_repayments_returns_an_empty_list(
    service_client: Client, borrower_id: str, loan_id: str
) -> None:
    assert service_client.repayments.of_loan(borrower_id, loan_id) == []


@pytest.mark.parametrize("wrap", ["data", "items"])
def test_a_list_in_an_envelope_is_accepted(service_client: Client, sandbox: Sandbox, wrap: str) -> None:
    sandbox.fail_next("repayments.of_loan", body={wrap: [{"uuid": "r-1"}], "pagination": {}})

    assert [each.uuid for each in service_client.repayments.of_loan("b-1", "l-1")] == ["r-1"]


@pytest.mark.parametrize(
    "odd",
    [
        {"effective_date": "2026-03-08 00:00:00 US/Pacific"},
        {"error_description": ""},
        {"amount": "250.10"},
        {"initiation_date": "2026-03-08 09:00:00 IST"},
    ],
)
def test_known_odd_values_are_not_issues(
    service_client: Client, sandbox: Sandbox, borrower_id: str, loan_id: str, odd: dict[str, Any]
) -> None:
    sandbox.world.repayment(loan_id, **{"amount": "250.10", "effective_date": date(2026, 3, 8)} | odd)
    (repayment,) = service_client.repayments.of_loan(borrower_id, loan_id)

    assert (repayment.amount, repayment.effective_date) == (Decimal("250.10"), date(2026, 3, 8))
    assert repayment.issues == ()


def test_repayments_of_an_unknown_loan_are_not_found(service_client: Client, borrower_id: str) -> None:
    with pytest.raises(NotFound):
        service_client.repayments.of_loan(borrower_id, "l-404")
