"""A gate that several clients share: what it does not admit is not sent, and it is told of every try."""

from collections.abc import Iterator
from decimal import Decimal

import pytest

from servicing import Application, Client, Loan, NotSent, Unavailable
from tests.servicing.test_watching import APPLICATION, LOAN, Notes
from tests.servicing.wire import Wire, answered, cut, silent


class Shared:
    """Admits as long as it is open, and keeps what it hears."""

    is_open = True

    def __init__(self) -> None:
        self.heard_of: list[bool] = []

    def admits(self) -> bool:
        return self.is_open

    def heard(self, *, answered: bool) -> None:
        self.heard_of.append(answered)
        self.is_open = answered


class Deaf(Shared):
    """Cannot keep anything."""

    def heard(self, *, answered: bool) -> None:
        raise OSError("disk full")


@pytest.fixture
def gate() -> Shared:
    return Shared()


@pytest.fixture
def client(wire: Wire, gate: Shared, pauses: list[float]) -> Iterator[Client]:
    with Client(wire.url, auth="none", sleep=pauses.append, gate=gate) as client:
        yield client


def read(client: Client) -> Loan:
    return client.loans.get("b-1", "l-1")


def write(client: Client) -> Application:
    return client.applications.submit("b-1", amount=Decimal("25000.00"))


def test_a_read_that_is_not_admitted_fails_at_once_and_is_no_call(
    wire: Wire, client: Client, gate: Shared, pauses: list[float]
) -> None:
    notes, gate.is_open = Notes(), False
    with pytest.raises(Unavailable, match="left alone for a moment"):
        read(client.watched_by(notes))

    assert (wire.requests, pauses, notes.outcomes) == ([], [], [])


def test_a_write_that_is_not_admitted_is_certainly_not_sent_and_told_of_once(
    wire: Wire, client: Client, gate: Shared
) -> None:
    notes, gate.is_open = Notes(), False
    with pytest.raises(NotSent, match="left alone for a moment"):
        write(client.watched_by(notes))

    ((_, outcome),) = notes.outcomes
    assert (outcome.tries, len(notes.before_calls), wire.requests) == (0, 1, [])


@pytest.mark.parametrize("reply", [cut, answered(status=503), answered(status=429)])
def test_a_read_is_not_tried_again_once_the_gate_is_shut(
    wire: Wire, client: Client, gate: Shared, reply: bytes
) -> None:
    wire.answer(reply)
    with pytest.raises(Unavailable):
        read(client)

    assert (len(wire.requests), gate.heard_of) == (1, [False])


def test_any_answer_to_the_question_itself_is_an_answer(wire: Wire, client: Client, gate: Shared) -> None:
    wire.answer(answered(LOAN), answered('{"message": "Broken"}', 500), answered(APPLICATION))
    read(client)
    with pytest.raises(Unavailable):
        read(client)
    write(client)

    assert gate.heard_of == [True, True, True]


def test_a_gate_that_cannot_keep_what_it_hears_hides_no_answer(
    wire: Wire, caplog: pytest.LogCaptureFixture
) -> None:
    wire.answer(answered(APPLICATION))
    with Client(wire.url, auth="none", gate=Deaf()) as client:
        assert write(client).uuid == "a-1"
    assert "could not record whether the service answered" in caplog.text


def test_whoever_waits_may_limit_each_call(wire: Wire, client: Client) -> None:
    wire.answer(silent)
    with pytest.raises(Unavailable, match="took too long"):
        read(client.within(0.1))


def test_a_gate_that_cannot_answer_stops_nothing(wire: Wire, caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Shared):
        def admits(self) -> bool:
            raise OSError("database away")

    wire.answer(answered(APPLICATION))
    with Client(wire.url, auth="none", gate=Broken()) as client:
        assert write(client).uuid == "a-1"
    assert "could not find out whether the service may be called" in caplog.text
