"""Gates, which block calls and record whether the service answered."""

import time
from collections.abc import Iterator
from decimal import Decimal

import pytest

from servicing import Application, Client, Loan, NotSent, Unavailable
from tests.servicing.test_watching import APPLICATION, LOAN, RecordingWatcher
from tests.servicing.wire import Wire, cut, response, silent

pytestmark = pytest.mark.core


class RecordingGate:
    """A gate that allows requests while it is open, and records results."""

    is_open = True

    def __init__(self) -> None:
        self.results: list[bool] = []

    def allows_request(self) -> bool:
        return self.is_open

    def record_result(self, *, answered: bool) -> None:
        self.results.append(answered)
        self.is_open = answered


class FailingGate(RecordingGate):
    """A gate that cannot record results."""

    def record_result(self, *, answered: bool) -> None:
        raise OSError("disk full")


@pytest.fixture
def gate() -> RecordingGate:
    return RecordingGate()


@pytest.fixture
def client(wire: Wire, gate: RecordingGate, pauses: list[float]) -> Iterator[Client]:
    with Client(wire.url, auth="none", sleep=pauses.append, gate=gate) as client:
        yield client


def read(client: Client) -> Loan:
    return client.loans.get("b-1", "l-1")


def write(client: Client) -> Application:
    return client.applications.submit("b-1", amount=Decimal("25000.00"))


def test_a_blocked_read_fails_at_once_and_is_not_recorded(
    wire: Wire, client: Client, gate: RecordingGate, pauses: list[float]
) -> None:
    watcher, gate.is_open = RecordingWatcher(), False
    with pytest.raises(Unavailable, match=r": The service isn’t responding\. Try again in a moment\.$"):
        read(client.with_watcher(watcher))

    assert (wire.requests, pauses, watcher.outcomes) == ([], [], [])


def test_a_blocked_write_is_recorded_once_without_being_sent(
    wire: Wire, client: Client, gate: RecordingGate
) -> None:
    watcher, gate.is_open = RecordingWatcher(), False
    with pytest.raises(NotSent, match=r"Nothing was sent\..*several calls in a row failed"):
        write(client.with_watcher(watcher))

    ((_, outcome),) = watcher.outcomes
    assert (outcome.tries, len(watcher.before_calls), wire.requests) == (0, 1, [])


@pytest.mark.parametrize("reply", [cut, response(status=503), response(status=429)])
def test_a_read_is_not_retried_after_the_gate_closes(
    wire: Wire, client: Client, gate: RecordingGate, reply: bytes
) -> None:
    wire.answer(reply)
    with pytest.raises(Unavailable):
        read(client)

    assert (len(wire.requests), gate.results) == (1, [False])


def test_any_final_status_counts_as_an_answer(wire: Wire, client: Client, gate: RecordingGate) -> None:
    wire.answer(response(LOAN), response('{"message": "Broken"}', 500), response(APPLICATION))
    read(client)
    with pytest.raises(Unavailable):
        read(client)
    write(client)

    assert gate.results == [True, True, True]


def test_a_gate_that_cannot_record_does_not_hide_the_answer(
    wire: Wire, caplog: pytest.LogCaptureFixture
) -> None:
    wire.answer(response(APPLICATION))
    with Client(wire.url, auth="none", gate=FailingGate()) as client:
        assert write(client).uuid == "a-1"
    assert "could not record whether the service answered" in caplog.text


def test_each_call_can_have_its_own_time_limit(wire: Wire, client: Client) -> None:
    wire.answer(silent)
    started = time.monotonic()
    with pytest.raises(Unavailable, match="took too long"):
        read(client.with_time_limit(0.1))
    assert time.monotonic() - started < 10  # The client's own limits are longer.


def test_a_failing_gate_does_not_block_calls(wire: Wire, caplog: pytest.LogCaptureFixture) -> None:
    class BrokenGate(RecordingGate):
        def allows_request(self) -> bool:
            raise OSError("database away")

    wire.answer(response(APPLICATION))
    with Client(wire.url, auth="none", gate=BrokenGate()) as client:
        assert write(client).uuid == "a-1"
    assert "could not find out whether the service may be called" in caplog.text
