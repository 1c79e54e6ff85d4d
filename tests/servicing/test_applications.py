"""Submitting loan applications and reading line-of-credit applications."""

import json
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from servicing import Client, InvalidInput, NotFound, OutcomeUnknown
from servicing.sandbox import Sandbox


@pytest.fixture
def borrower_id(sandbox: Sandbox) -> str:
    return str(sandbox.world.borrower()["uuid"])


def test_submit_returns_the_decision_and_offers(
    service_client: Client, sandbox: Sandbox, borrower_id: str
) -> None:
    application = service_client.applications.submit(borrower_id, amount=Decimal("25000.00"))

    assert json.loads(sandbox.calls[-1].body, parse_float=str) == {"amount": "25000.00"}
    assert application.amount == Decimal(25000)
    assert application.status is not None
    assert application.status.decision == "APPROVED"
    assert all(isinstance(offer.apr, Decimal) for offer in application.offers)
    assert isinstance(application.offers[0].start_date, date)
    assert application.created_at is not None
    assert application.created_at.at is not None


def test_a_rejected_application_has_details_and_no_offers(
    service_client: Client, sandbox: Sandbox, borrower_id: str
) -> None:
    sandbox.fail_next(
        "applications.submit",
        changes={"status": {"name": "REJECTED", "details": {"score": 480}}, "offers": []},
    )
    application = service_client.applications.submit(borrower_id, amount=Decimal("25000.00"))

    assert application.status is not None
    assert (application.status.decision, application.status.details) == ("REJECTED", {"score": 480})
    assert application.offers == ()


@pytest.mark.parametrize(
    "amount", [Decimal(0), Decimal(-1), Decimal("NaN"), Decimal("0.001"), 25000.0, "25000", None, True]
)
def test_an_invalid_amount_is_not_sent(service_client: Client, sandbox: Sandbox, amount: Any) -> None:
    with pytest.raises(InvalidInput) as caught:
        service_client.applications.submit("b-1", amount=amount)

    assert list(caught.value.problems) == ["amount"]
    assert sandbox.calls == []


def test_a_lost_answer_is_an_unknown_outcome_without_a_retry(
    service_client: Client, sandbox: Sandbox, borrower_id: str
) -> None:
    sandbox.fail_next("applications.submit", cut_after_commit=True)
    with pytest.raises(OutcomeUnknown):
        service_client.applications.submit(borrower_id, amount=Decimal("25000.00"))

    assert len(sandbox.calls) == 1


def test_get_for_line_returns_the_application(
    service_client: Client, sandbox: Sandbox, borrower_id: str
) -> None:
    known = sandbox.world.line_application(borrower_id)
    application = service_client.applications.get_for_line(borrower_id, known["uuid"])

    assert (application.uuid, application.product) == (known["uuid"], "BUILD_CREDIT")
    assert application.raw == known


def test_an_application_of_another_borrower_is_not_found(
    service_client: Client, sandbox: Sandbox, borrower_id: str
) -> None:
    known = sandbox.world.line_application(borrower_id)

    with pytest.raises(NotFound):
        service_client.applications.get_for_line(sandbox.world.borrower()["uuid"], known["uuid"])
