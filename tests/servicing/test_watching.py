"""Watchers: the calls and outcomes they receive, and how their failures are handled."""

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from servicing import (
    AnswerNotSaved,
    Application,
    Call,
    Client,
    Loan,
    Outcome,
    OutcomeUnknown,
    ServicingError,
)
from tests.servicing.wire import Reply, Wire, cut, response

pytestmark = pytest.mark.core

LOAN = '{"uuid": "l-1", "amount": 0.1}'
APPLICATION = '{"uuid": "a-1"}'


@pytest.fixture
def client(wire: Wire, pauses: list[float]) -> Iterator[Client]:
    with Client(wire.url, auth="none", sleep=pauses.append) as client:
        yield client


def read(client: Client) -> Loan:
    return client.loans.get("b-1", "l-1")


def write(client: Client) -> Application:
    return client.applications.submit("b-1", amount=Decimal("25000.00"))


class RecordingWatcher:
    """A watcher that records calls and outcomes."""

    def __init__(self) -> None:
        self.before_calls: list[Call] = []
        self.outcomes: list[tuple[Call, Outcome]] = []

    def before(self, call: Call) -> None:
        self.before_calls.append(call)

    def after(self, call: Call, outcome: Outcome) -> None:
        self.outcomes.append((call, outcome))


class FailingWatcher(RecordingWatcher):
    """A watcher that cannot record outcomes."""

    def after(self, call: Call, outcome: Outcome) -> None:
        raise OSError("disk full")


class UnsavedWatcher(RecordingWatcher):
    """A watcher that fails to save the answer."""

    def after(self, call: Call, outcome: Outcome) -> None:
        raise AnswerNotSaved("disk full")


class BlockingWatcher(RecordingWatcher):
    """A watcher that stops every write."""

    def before(self, call: Call) -> None:
        raise OSError("disk full")


@pytest.fixture
def watcher() -> RecordingWatcher:
    return RecordingWatcher()


def test_a_watcher_runs_before_a_write_and_after_every_call(
    wire: Wire, client: Client, watcher: RecordingWatcher
) -> None:
    wire.answer(response(APPLICATION), response(LOAN))
    watched = client.with_watcher(watcher, request_id="click-7")
    write(watched)
    read(watched)

    (before,) = watcher.before_calls
    assert (before.operation, before.kind, before.method) == ("applications.submit", "write", "POST")
    assert (before.path, before.ids) == ("/v1/users/b-1/loans/applications", {"borrower_id": "b-1"})
    assert before.body == {"amount": Decimal("25000.00")}
    assert [call.operation for call, _ in watcher.outcomes] == ["applications.submit", "loans.get"]


def test_a_watcher_gets_the_answer_and_its_raw_body(
    wire: Wire, client: Client, watcher: RecordingWatcher
) -> None:
    wire.answer(response(status=503), response(LOAN))
    loan = read(client.with_watcher(watcher))

    ((call, outcome),) = watcher.outcomes
    assert outcome.answer is loan
    assert outcome.answer.raw == outcome.body == {"uuid": "l-1", "amount": Decimal("0.1")}
    assert (outcome.status, outcome.tries, outcome.error) == (200, 2, None)
    assert call.query == {}


@pytest.mark.parametrize(
    ("reply", "status", "body"),
    [
        (response('{"message": "No.", "ssn": "123456789"}', 422), 422, {"message": "No.", "ssn": "[hidden]"}),
        (response("<p>SSN 123-45-6789</p>", 500), 500, "<p>SSN [hidden]</p>"),
        (cut, None, None),
    ],
)
def test_a_watcher_gets_the_error_and_the_masked_body(
    wire: Wire, client: Client, watcher: RecordingWatcher, reply: Reply, status: int | None, body: object
) -> None:
    wire.answer(reply)
    with pytest.raises(ServicingError) as caught:
        write(client.with_watcher(watcher))

    ((_, outcome),) = watcher.outcomes
    assert outcome.error is caught.value
    assert (outcome.answer, outcome.status, outcome.body) == (None, status, body)


@pytest.mark.parametrize(
    ("options", "repeated"),
    [
        ({"auth": "bearer", "token": "Abc/123+xyz="}, ["Abc/123+xyz=", r"Abc\/123+xyz="]),
        ({"auth": "header", "token": "Abc-123-xyz", "auth_headers": ["X-Api-Key"]}, ["Abc-123-xyz"]),
        ({"auth": "bearer", "token": "Abc-1234"}, ["Abc-1234"]),
        (
            {"auth": "basic", "client_id": "desk", "secret": "abcdefgh12345678"},
            ["abcdefgh12345678", "ZGVzazphYmNkZWZnaDEyMzQ1Njc4"],
        ),
    ],
    ids=["bearer", "header", "shortest", "basic"],
)
def test_credentials_that_the_service_repeats_are_hidden(
    wire: Wire, watcher: RecordingWatcher, options: dict[str, Any], repeated: list[str]
) -> None:
    wire.answer(response(f'{{"message": "Not {" or ".join(repeated)}."}}', 422))
    with Client(wire.url, max_tries=1, **options) as client, pytest.raises(ServicingError) as caught:
        read(client.with_watcher(watcher))
    shown = " or ".join("[hidden]" for _ in repeated)
    ((_, outcome),) = watcher.outcomes
    assert outcome.body == {"message": f"Not {shown}."}
    assert caught.value.reasons == (f"Not {shown}.",)


def test_calls_of_one_request_share_an_id_prefix(
    wire: Wire, client: Client, watcher: RecordingWatcher
) -> None:
    wire.answer(response(LOAN))
    watched = client.with_watcher(watcher, request_id="click-7")
    read(watched)
    read(watched)

    ids = [call.request_id for call, _ in watcher.outcomes]
    assert len(set(ids)) == 2
    assert all(re.fullmatch("click-7-[0-9a-f]{6}", each) for each in ids)


def test_a_failing_watcher_does_not_hide_the_answer(
    wire: Wire, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    wire.answer(response(APPLICATION), cut)
    watched = client.with_watcher(FailingWatcher())

    assert write(watched).uuid == "a-1"
    with pytest.raises(OutcomeUnknown):
        write(watched)
    assert "could not record the outcome of applications.submit" in caplog.text


def test_an_unsaved_answer_raises_an_error(wire: Wire, client: Client) -> None:
    wire.answer(response(APPLICATION))
    with pytest.raises(AnswerNotSaved, match="disk full"):
        write(client.with_watcher(UnsavedWatcher()))


def test_a_write_that_cannot_be_recorded_is_not_sent(wire: Wire, client: Client) -> None:
    with pytest.raises(OSError, match="disk full"):
        write(client.with_watcher(BlockingWatcher()))

    assert wire.requests == []


def test_the_original_client_has_no_watcher(wire: Wire, client: Client, watcher: RecordingWatcher) -> None:
    wire.answer(response(LOAN))
    client.with_watcher(watcher)
    read(client)

    assert watcher.outcomes == []
