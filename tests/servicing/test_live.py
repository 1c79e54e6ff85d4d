"""The reads of the interface against a real service, to notice when the sandbox differs from it.

`SERVICING_LIVE_URL`, `LIVE_CLIENT_ID` and `LIVE_SECRET` say where and who; `LIVE_IDS` names what to read, as
`borrower=…,loan=…,line=…,application=…`. Run with `pytest -m live tests/servicing`.
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


def assert_as_described(*models: Model) -> None:
    """Check that every value can be read and every field is in the interface."""
    for model in models:
        assert model.issues == ()
        assert model.extra == {}


def test_loan(client: Client, ids: dict[str, str]) -> None:
    assert_as_described(client.loans.get(ids["borrower"], ids["loan"]))


def test_statement(client: Client, ids: dict[str, str]) -> None:
    assert_as_described(client.credit_lines.statement(ids["borrower"], ids["line"]))


def test_application_for_a_line(client: Client, ids: dict[str, str]) -> None:
    assert_as_described(client.applications.get_for_line(ids["borrower"], ids["application"]))


def test_repayments(client: Client, ids: dict[str, str]) -> None:
    assert_as_described(*client.repayments.of_loan(ids["borrower"], ids["loan"]))
    assert_as_described(*client.repayments.of_line(ids["borrower"], ids["line"]))


def test_messages(client: Client) -> None:
    assert_as_described(*islice(client.messages.iterate(), 250))
