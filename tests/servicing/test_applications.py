"""Applying for a loan, and reading an application for a line of credit."""

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


def test_an_application_is_answered_with_its_decision_and_offers(
    lending: Client, sandbox: Sandbox, borrower_id: str
) -> None:
    application = lending.applications.submit(borrower_id, amount=Decimal("25000.00"))

    assert json.loads(sandbox.calls[-1].body, parse_float=str) == {"amount": "25000.00"}
    assert application.amount == Decimal(25000)
    assert application.status is not None
    assert application.status.decision == "APPROVED"
    assert all(isinstance(offer.apr, Decimal) for offer in application.offers)
    assert isinstance(application.offers[0].start_date, date)
    assert application.created_at is not None
    assert application.created_at.at is not None


def test_a_refused_application_gives_its_details_as_they_are(
    lending: Client, sandbox: Sandbox, borrower_id: str
) -> None:
    sandbox.fail_next(
        "applications.submit",
        changes={"status": {"name": "REJECTED", "details": {"score": 480}}, "offers": []},
    )
    application = lending.applications.submit(borrower_id, amount=Decimal("25000.00"))

    assert application.status is not None
    assert (application.status.decision, application.status.details) == ("REJECTED", {"score": 480})
    assert application.offers == ()


@pytest.mark.parametrize(
    "amount", [Decimal(0), Decimal(-1), Decimal("NaN"), Decimal("0.001"), 25000.0, "25000", None, True]
)
def test_an_amount_that_cannot_be_applied_for_is_refused(
    lending: Client, sandbox: Sandbox, amount: Any
) -> None:
    with pytest.raises(InvalidInput) as caught:
        lending.applications.submit("b-1", amount=amount)

    assert list(caught.value.problems) == ["amount"]
    assert sandbox.calls == []


def test_an_application_whose_answer_was_cut_may_have_been_made(
    lending: Client, sandbox: Sandbox, borrower_id: str
) -> None:
    sandbox.fail_next("applications.submit", cut_after_commit=True)
    with pytest.raises(OutcomeUnknown):
        lending.applications.submit(borrower_id, amount=Decimal("25000.00"))

    assert len(sandbox.calls) == 1


def test_an_application_for_a_line_can_be_read_again(
    lending: Client, sandbox: Sandbox, borrower_id: str
) -> None:
    known = sandbox.world.line_application(borrower_id)
    application = lending.applications.get_for_line(borrower_id, known["uuid"])

    assert (application.uuid, application.product) == (known["uuid"], "BUILD_CREDIT")
    assert application.raw == known


def test_an_application_of_somebody_else_is_not_found(
    lending: Client, sandbox: Sandbox, borrower_id: str
) -> None:
    known = sandbox.world.line_application(borrower_id)

    with pytest.raises(NotFound):
        lending.applications.get_for_line(sandbox.world.borrower()["uuid"], known["uuid"])
