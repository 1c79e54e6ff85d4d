"""Reads from a real service, to catch differences between it and the sandbox.

Set `SERVICING_LIVE_URL`, `LIVE_CLIENT_ID` and `LIVE_SECRET` to connect, and list the records to read in
`LIVE_IDS` as `borrower=…,loan=…,line=…,application=…`. Run with `pytest -m live tests/servicing`.
"""

import os
from collections.abc import Iterator
from itertools import islice

import pytest

from servicing import Client
from servicing.codec import Model

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif("SERVICING_LIVE_URL" not in os.environ, reason="SERVICING_LIVE_URL is not set"),
]


@pytest.fixture
def client() -> Iterator[Client]:
    with Client(
        os.environ["SERVICING_LIVE_URL"],
        client_id=os.environ["LIVE_CLIENT_ID"],
        secret=os.environ["LIVE_SECRET"],
    ) as client:
        yield client


@pytest.fixture
def ids() -> dict[str, str]:
    return dict(pair.split("=") for pair in os.environ["LIVE_IDS"].split(","))


def assert_matches_interface(*models: Model) -> None:
    """Check that every value can be read and every field is in the interface."""
    for model in models:
        assert model.issues == ()
        assert model.extra == {}


def test_a_loan_matches_the_interface(client: Client, ids: dict[str, str]) -> None:
    assert_matches_interface(client.loans.get(ids["borrower"], ids["loan"]))


def test_a_statement_matches_the_interface(client: Client, ids: dict[str, str]) -> None:
    assert_matches_interface(client.credit_lines.statement(ids["borrower"], ids["line"]))


def test_an_application_for_a_line_matches_the_interface(client: Client, ids: dict[str, str]) -> None:
    assert_matches_interface(client.applications.get_for_line(ids["borrower"], ids["application"]))


def test_repayments_match_the_interface(client: Client, ids: dict[str, str]) -> None:
    assert_matches_interface(*client.repayments.of_loan(ids["borrower"], ids["loan"]))
    assert_matches_interface(*client.repayments.of_line(ids["borrower"], ids["line"]))


def test_messages_match_the_interface(client: Client) -> None:
    assert_matches_interface(*islice(client.messages.iterate(), 250))
