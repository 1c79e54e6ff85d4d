"""Reading a loan."""

from datetime import date
from decimal import Decimal

import pytest

from servicing import Client, NotFound, Unavailable
from servicing.sandbox import Sandbox


@pytest.fixture
def borrower_id(sandbox: Sandbox) -> str:
    return str(sandbox.world.borrower()["uuid"])


def test_a_loan_is_read_with_its_terms(service_client: Client, sandbox: Sandbox, borrower_id: str) -> None:
    known = sandbox.world.loan(borrower_id, amount="12000.10", opened=date(2026, 1, 15))
    loan = service_client.loans.get(borrower_id, known["uuid"])

    assert sandbox.calls[-1].path == f"/v1/users/{borrower_id}/loan/{known['uuid']}"
    assert (loan.uuid, loan.user_uuid) == (known["uuid"], borrower_id)
    assert (loan.amount, loan.opening_date) == (Decimal("12000.10"), date(2026, 1, 15))
    assert loan.issues == ()
    assert loan.extra == {}


@pytest.mark.parametrize(("shape", "number"), [("snake", "number"), ("pascal", "PaymentNumber")])
@pytest.mark.parametrize("installments", [0, 12, 360])
def test_installments_are_returned_unchanged(
    service_client: Client, sandbox: Sandbox, borrower_id: str, shape: str, number: str, installments: int
) -> None:
    known = sandbox.world.loan(borrower_id, installments=installments, shape=shape)
    loan = service_client.loans.get(borrower_id, known["uuid"])

    assert len(loan.installments) == installments
    assert all(number in row for row in loan.installments)


def test_a_loan_of_another_borrower_is_not_found(
    service_client: Client, sandbox: Sandbox, borrower_id: str
) -> None:
    known = sandbox.world.loan(borrower_id)

    with pytest.raises(NotFound, match="not found"):
        service_client.loans.get(sandbox.world.borrower()["uuid"], known["uuid"])


def test_wrong_types_and_unknown_values_affect_only_their_field(
    service_client: Client, sandbox: Sandbox, borrower_id: str
) -> None:
    known = sandbox.world.loan(borrower_id, status="HIBERNATING", apr="high", term="12", branch=7)
    loan = service_client.loans.get(borrower_id, known["uuid"])

    assert (loan.status, loan.apr, loan.term) == ("HIBERNATING", None, 12)
    assert [issue.path for issue in loan.issues] == ["apr"]
    assert loan.extra == {"branch": 7}


def test_a_read_succeeds_after_the_service_recovers(
    service_client: Client, sandbox: Sandbox, borrower_id: str, pauses: list[float]
) -> None:
    known = sandbox.world.loan(borrower_id)
    sandbox.fail_next("loans.get", status=503, times=2)

    assert service_client.loans.get(borrower_id, known["uuid"]).uuid == known["uuid"]
    assert len(pauses) == 2


def test_a_read_fails_if_the_service_does_not_recover(service_client: Client, sandbox: Sandbox) -> None:
    sandbox.fail_next("loans.get", cut_before=True, times=3)

    with pytest.raises(Unavailable):
        service_client.loans.get("b-1", "l-1")
