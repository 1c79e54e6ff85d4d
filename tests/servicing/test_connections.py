"""Slow, broken and hostile connections: time limits, wrong records, outcomes of writes and size limits."""

import gzip
import os
import socket
import ssl
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import requests
from requests.adapters import HTTPAdapter

from servicing import (
    Borrower,
    Call,
    Client,
    Loan,
    NotSent,
    Outcome,
    OutcomeUnknown,
    ProtocolError,
    ServicingError,
    Unavailable,
)
from servicing.codec import Budget, parse
from servicing.transport import Payload
from tests.servicing.test_transport import write_self_signed_certificate
from tests.servicing.wire import Handler, Reply, Wire, cut, response, silent, unending

pytestmark = pytest.mark.core

LOAN = '{"uuid": "l-1", "amount": 0.1}'
APPLICATION = '{"uuid": "a-1"}'
HEAD = b"HTTP/1.1 200 OK\r\n"
LIMIT_SECONDS = 0.6
GRACE_SECONDS = 1.0


def read(client: Client) -> Loan:
    return client.loans.get("b-1", "l-1")


def write(client: Client) -> object:
    return client.applications.submit("b-1", amount=Decimal("25000.00"))


def catch_error(call_client: Callable[[Client], object], client: Client) -> ServicingError:
    with pytest.raises(ServicingError) as caught:
        call_client(client)
    return caught.value


def send_slowly(start: bytes, piece: bytes, pause: float = 0.05) -> Reply:
    """Start an answer, then repeat a piece until the client gives up."""

    def send(handler: Handler) -> None:
        try:
            handler.wfile.write(start)
            while True:
                handler.wfile.write(piece)
                time.sleep(pause)
        except OSError:
            pass

    return send


def empty_gzip() -> bytes:
    """Compressed bytes that decompress to nothing."""
    return gzip.compress(b"")


def chunk(content: bytes) -> bytes:
    return f"{len(content):x}\r\n".encode() + content + b"\r\n"


CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
ENDLESS: dict[str, Reply] = {
    "status line": send_slowly(b"", b"H"),
    "headers": send_slowly(HEAD, b"X"),
    "many headers": send_slowly(HEAD, b"X-A: 1\r\n"),
    "100 Continue": send_slowly(b"", b"HTTP/1.1 100 Continue\r\n\r\n", 0),
    "103 Early Hints": send_slowly(b"", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"),
    "chunk size": send_slowly(CHUNKED, b"0"),
    "chunk extension": send_slowly(CHUNKED + b"1;", b"x"),
    "trailers": send_slowly(CHUNKED + chunk(LOAN.encode()) + b"0\r\n", b"X-A: 1\r\n"),
    "body": send_slowly(HEAD + b"Content-Length: 100000\r\n\r\n", b" "),
    "body without length": send_slowly(HEAD + b"\r\n", b" "),
    "empty gzip": send_slowly(
        CHUNKED.replace(b"OK\r\n", b"OK\r\nContent-Encoding: gzip\r\n"), chunk(empty_gzip())
    ),
}


@pytest.mark.parametrize("call_client", [read, write])
@pytest.mark.parametrize("reply", ENDLESS.values(), ids=ENDLESS)
def test_a_trickling_answer_times_out(
    wire: Wire, reply: Reply, call_client: Callable[[Client], object]
) -> None:
    wire.answer(reply)
    started = time.monotonic()
    with Client(wire.url, auth="none", time_limit=LIMIT_SECONDS) as client:
        error = catch_error(call_client, client)

    assert isinstance(error, Unavailable if call_client is read else OutcomeUnknown)
    assert time.monotonic() - started < LIMIT_SECONDS + GRACE_SECONDS


def test_a_stalled_tls_handshake_times_out_without_sending(wire: Wire) -> None:
    wire.answer(send_slowly(b"\x16\x03\x03\x40\x00", b"\x02"))
    started = time.monotonic()
    with Client(wire.url.replace("http:", "https:"), auth="none", time_limit=LIMIT_SECONDS) as client:
        error = catch_error(write, client)

    assert isinstance(error, NotSent)
    assert time.monotonic() - started < LIMIT_SECONDS + GRACE_SECONDS


def test_a_trickling_answer_over_tls_times_out(tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(write_self_signed_certificate(tmp_path))
    with Wire(context) as wire:
        wire.answer(send_slowly(HEAD, b"X"))
        started = time.monotonic()
        session = requests.Session()
        session.verify = False
        with (
            pytest.warns(match="Unverified"),
            Client(wire.url, auth="none", time_limit=LIMIT_SECONDS, session=session) as client,
        ):
            error = catch_error(write, client)

    assert isinstance(error, OutcomeUnknown)
    assert time.monotonic() - started < LIMIT_SECONDS + GRACE_SECONDS


def test_a_trickling_proxy_times_out_without_sending(wire: Wire) -> None:
    wire.answer(send_slowly(b"", b"HTTP/1.1 100 Continue\r\n\r\n"))
    proxies = {"https": wire.url}
    with Client("https://lender.example", auth="none", time_limit=LIMIT_SECONDS, proxies=proxies) as client:
        started = time.monotonic()
        error = catch_error(write, client)

    assert isinstance(error, NotSent)
    assert time.monotonic() - started < LIMIT_SECONDS + GRACE_SECONDS
    assert wire.heads[0].startswith("connect lender.example:443")


def test_proxied_calls_use_separate_connections(wire: Wire) -> None:
    wire.answer(response(APPLICATION))
    with Client("http://lender.example", auth="none", proxies={"http": wire.url}) as client:
        write(client)
        write(client)

    assert wire.heads[0].startswith("post http://lender.example/v1/users/b-1/loans/applications ")
    assert wire.connections == 2


def test_a_large_request_can_exceed_the_connect_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:

        def receive_late() -> None:
            connection, _ = server.accept()
            with connection:
                time.sleep(0.6)
                while (part := connection.recv(2**20)) and not part.endswith(b'"}'):
                    pass
                connection.sendall(response(APPLICATION))

        receiving = pool.submit(receive_late)
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        payload = Payload({"report": "x" * 20_000_000})
        with Client(url, auth="none", timeout=(0.3, 10)) as client:
            answer = client._transport.call(
                "reports.send",
                "POST",
                "/v1/reports",
                ids={},
                payload=payload,
                read=lambda value, budget: value,
            )
        receiving.result()

    assert answer == {"uuid": "a-1"}


def test_a_silent_address_leaves_time_for_the_next_address(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as stack:
        silent_server = stack.enter_context(socket.create_server(("127.0.0.2", wire.port), backlog=0))
        for _ in range(3):  # Linux accepts no more connections while these wait to be accepted.
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(silent_server.getsockname())
        found = [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, wire.port))
            for address in ("127.0.0.2", "127.0.0.1")
        ]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: found)
        wire.answer(response(LOAN))
        with Client("http://lender.example", auth="none", timeout=2, time_limit=2, max_tries=1) as client:
            assert read(client).uuid == "l-1"


def test_a_write_without_a_free_connection_is_not_sent(wire: Wire) -> None:
    session = requests.Session()
    session.mount("http://", HTTPAdapter(pool_maxsize=1, pool_block=True))
    wire.answer(silent)
    with (
        Client(wire.url, auth="none", time_limit=2, max_tries=1, session=session) as client,
        ThreadPoolExecutor(1) as pool,
    ):
        blocked_read = pool.submit(catch_error, read, client)
        wire.arrived()
        assert isinstance(catch_error(write, client.with_time_limit(LIMIT_SECONDS)), NotSent)
        assert isinstance(blocked_read.result(), Unavailable)


def test_an_endless_interim_header_cuts_the_connection(wire: Wire) -> None:
    wire.answer(unending(b"HTTP/1.1 100 Continue\r\nX: "))
    with Client(wire.url, auth="none", max_tries=1) as client:
        assert "cut" in catch_error(read, client).message


def test_hiding_sensitive_fields_respects_the_deadline() -> None:
    with pytest.raises(TimeoutError):
        parse('{"items": [{"ssn": 1}]}', Budget(deadline=time.monotonic()))


# Wrong or late answers


def test_a_late_answer_affects_at_most_one_call(wire: Wire) -> None:
    """If the second request reads the first answer, its own answer may still arrive on that connection."""
    wire.answer(response(LOAN), response(LOAN), response('{"uuid": "l-2", "amount": 0.2}'))
    with Client(wire.url, auth="none") as client:
        read(client)
        assert isinstance(catch_error(lambda it: it.loans.get("b-1", "l-2"), client), ProtocolError)
        assert client.loans.get("b-1", "l-2").uuid == "l-2"

    assert wire.connections == 2


def test_forked_processes_do_not_share_connections(wire: Wire) -> None:
    wire.answer(response(LOAN))
    with Client(wire.url, auth="none") as client:
        read(client)
        child = os.fork()
        if not child:
            status = 1
            try:
                status = read(client).uuid != "l-1"
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        read(client)

    assert wire.connections == 2


@pytest.mark.parametrize("status", [100, 102, 103, 150, 199])
def test_an_interim_answer_is_skipped_and_its_connection_not_reused(wire: Wire, status: int) -> None:
    interim = f"HTTP/1.1 {status} Wait\r\nLink: </a>\r\n\r\n".encode()
    wire.answer(interim * 3 + response(LOAN), response('{"uuid": "l-2", "amount": 0.2}'))
    with Client(wire.url, auth="none") as client:
        assert read(client).amount == Decimal("0.1")
        assert client.loans.get("b-1", "l-2").uuid == "l-2"

    assert wire.connections == 2


def test_switching_protocols_is_a_protocol_error(wire: Wire) -> None:
    wire.answer(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n", response(APPLICATION))
    with Client(wire.url, auth="none") as client:
        assert isinstance(catch_error(read, client), ProtocolError)
        write(client)

    assert wire.connections == 2


@pytest.mark.parametrize(
    "first",
    [
        response(LOAN) + response('{"uuid": "l-9"}'),
        response(LOAN) + b"HTTP/1.1 20",
        response(LOAN, headers={"Transfer-Encoding": "identity"}),
        response(LOAN, headers={"Connection": "close"}),
        response(LOAN).replace(b"HTTP/1.1", b"HTTP/1.0"),
    ],
)
def test_a_connection_with_an_ambiguous_answer_is_not_reused(wire: Wire, first: bytes) -> None:
    wire.answer(first, response('{"uuid": "l-2", "amount": 0.2}'))
    with Client(wire.url, auth="none") as client:
        assert read(client).uuid == "l-1"
        assert client.loans.get("b-1", "l-2").uuid == "l-2"

    assert wire.connections == 2


def test_an_answer_with_the_wrong_uuid_is_rejected(wire: Wire) -> None:
    wire.answer(response('{"uuid": "l-2", "first_name": "Other"}'))
    changes = {"email": "new@example.com"}
    with Client(wire.url, auth="none") as client:
        errors = [
            catch_error(read, client),
            catch_error(lambda it: it.applications.get_for_line("b-1", "a-1"), client),
            catch_error(lambda it: it.borrowers.update("b-1", **changes), client),
            catch_error(lambda it: it.borrowers.update_key_person("b-1", "p-1", **changes), client),
        ]
        wire.answer(response('{"uuid": "B-1"}'))
        borrower: Borrower = client.borrowers.update("b-1", email="new@example.com")

    assert [type(error) for error in errors] == [
        ProtocolError,
        ProtocolError,
        OutcomeUnknown,
        OutcomeUnknown,
    ]
    assert borrower.uuid == "B-1"


# Retries and outcomes


def test_a_read_with_a_truncated_head_is_retried(wire: Wire, pauses: list[float]) -> None:
    for head in (b"HTTP", HEAD, HEAD + b"Content-Len", HEAD + b"Content-Length: 2\r\n"):
        wire.requests.clear()
        wire.answer(lambda handler, head=head: handler.wfile.write(head) and None, response(LOAN))  # type: ignore[misc]
        with Client(wire.url, auth="none", sleep=pauses.append) as client:
            assert read(client).uuid == "l-1"
        assert len(wire.requests) == 2


@pytest.mark.parametrize("status", [408, 425, 499])
def test_a_read_with_an_ambiguous_status_is_retried(wire: Wire, pauses: list[float], status: int) -> None:
    wire.answer(response(status=status), response(LOAN))
    with Client(wire.url, auth="none", sleep=pauses.append) as client:
        assert read(client).uuid == "l-1"


@pytest.mark.parametrize("status", [408, 425, 499])
def test_a_write_with_an_ambiguous_status_is_sent_once(wire: Wire, status: int) -> None:
    wire.answer(response(status=status))
    with Client(wire.url, auth="none") as client:
        assert isinstance(catch_error(write, client), OutcomeUnknown)
    assert len(wire.requests) == 1


def test_an_error_carries_retry_after(wire: Wire) -> None:
    wire.answer(response(status=429, headers={"Retry-After": "17"}))
    with Client(wire.url, auth="none") as client:
        assert catch_error(write, client).retry_after == 17


class RecordingWatcher:
    """A watcher that records outcomes."""

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []

    def before(self, call: Call) -> None: ...

    def after(self, call: Call, outcome: Outcome) -> None:
        self.outcomes.append(outcome)


class InterruptedAuth:
    """Authentication that raises `KeyboardInterrupt`."""

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        raise KeyboardInterrupt


def test_an_interrupted_write_has_an_outcome(wire: Wire) -> None:
    watcher = RecordingWatcher()
    with Client(wire.url, auth="none") as client:
        watched = client.with_watcher(watcher)
        watched._transport.auth = InterruptedAuth()  # type: ignore[assignment]
        with pytest.raises(KeyboardInterrupt):
            write(watched)

    assert [type(outcome.error) for outcome in watcher.outcomes] == [NotSent]
    assert wire.requests == []


def test_a_bug_while_parsing_is_an_unknown_outcome(wire: Wire) -> None:
    wire.answer(response(APPLICATION))
    watcher = RecordingWatcher()

    def raise_bug(value: Any, budget: Any) -> None:
        raise RuntimeError("a mistake of ours")

    with Client(wire.url, auth="none") as client:
        transport = client.with_watcher(watcher)._transport
        with pytest.raises(OutcomeUnknown, match="on our side"):
            transport.call("applications.submit", "POST", "/v1/users", ids={}, read=raise_bug)

    assert [type(outcome.error) for outcome in watcher.outcomes] == [OutcomeUnknown]


def test_a_bug_before_sending_raises_not_sent(wire: Wire) -> None:
    def raise_bug(request: requests.PreparedRequest) -> requests.PreparedRequest:
        raise RuntimeError("a mistake of ours")

    with Client(wire.url, auth="none") as client:
        client._transport.auth = raise_bug  # type: ignore[assignment]
        assert isinstance(catch_error(write, client), NotSent)
    assert wire.requests == []


def test_a_timeout_while_parsing_is_an_unknown_outcome(wire: Wire) -> None:
    wire.answer(response(APPLICATION))

    def time_out(value: Any, budget: Any) -> None:
        raise TimeoutError

    with Client(wire.url, auth="none") as client, pytest.raises(OutcomeUnknown, match="took too long"):
        client._transport.call("applications.submit", "POST", "/v1/users", ids={}, read=time_out)


def test_a_write_through_an_unreachable_proxy_is_not_sent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        address = f"http://127.0.0.1:{unused.getsockname()[1]}"
    with Client("https://lender.example", auth="none", proxies={"https": address}) as client:
        error = catch_error(write, client)

    assert isinstance(error, NotSent)
    assert "the proxy didn’t connect" in error.message


# Size limits


def gzipped_answer(text: str) -> bytes:
    return response(gzip.compress(text.encode()), headers={"Content-Encoding": "gzip"})


@pytest.mark.parametrize(
    "text",
    [
        "[" + "{}," * 1_000_000 + "{}]",
        "[" * 2_100_000,
        '{"uuid": "l-1", "installments": [' + "1," * 1_000_000 + "1]}",
        '["' + '",","' * 1_000_001 + '"]',
    ],
    ids=["objects", "nesting", "numbers", "strings of commas"],
)
def test_an_answer_with_too_many_values_is_rejected(wire: Wire, text: str) -> None:
    wire.answer(gzipped_answer(text))
    with Client(wire.url, auth="none") as client:
        write_error, read_error = catch_error(write, client), catch_error(read, client)

    assert isinstance(write_error, OutcomeUnknown)
    assert isinstance(read_error, ProtocolError)
    assert "more than 1,000,000 values" in read_error.message


def test_commas_in_strings_do_not_count_as_values(wire: Wire) -> None:
    wire.answer(gzipped_answer('{"uuid": "l-1", "external_id": "' + '\\"[{,\\\\' * 400_000 + '"}'))
    with Client(wire.url, auth="none", max_values=20) as client:
        assert read(client).uuid == "l-1"


@pytest.mark.parametrize(("count", "fits"), [(20, True), (21, False)])
def test_values_are_counted_exactly_near_the_limit(wire: Wire, count: int, fits: bool) -> None:
    """The values are the object, its uuid, the list and the contents of the list."""
    filling = ", ".join(['"a, [b"'] * (count - 3))
    wire.answer(response(f'{{"uuid": "l-1", "installments": [{filling}]}}'))
    with Client(wire.url, auth="none", max_values=20) as client:
        if fits:
            assert len(read(client).installments) == count - 3
        else:
            assert "more than 20 values" in catch_error(read, client).message


@pytest.mark.parametrize(("count", "fits"), [(50, True), (51, False)])
def test_records_are_counted_exactly_near_the_limit(wire: Wire, count: int, fits: bool) -> None:
    """An application counts with its offers."""
    repayments = ", ".join(f'{{"uuid": "r-{number}"}}' for number in range(count))
    application = response('{"uuid": "a-1", "offers": [' + ", ".join(["{}"] * (count - 1)) + "]}")
    with Client(wire.url, auth="none", max_records=50) as client:
        wire.answer(response(f"[{repayments}]"))
        if fits:
            assert len(client.repayments.of_loan("b-1", "l-1")) == count
        else:
            error = catch_error(lambda it: it.repayments.of_loan("b-1", "l-1"), client)
            assert "more than 50 records" in error.message

        wire.answer(application)
        if fits:
            assert len(client.applications.get_for_line("b-1", "a-1").offers) == count - 1
        else:
            error = catch_error(lambda it: it.applications.get_for_line("b-1", "a-1"), client)
            assert "more than 50 records" in error.message


def test_one_bad_record_does_not_affect_the_others(wire: Wire) -> None:
    texts = [f'{{"uuid": "r-{number}", "amount": 310.25}}' for number in range(200)]
    texts[77] = '{"uuid": "r-77", "amount": "plenty"}'
    wire.answer(response(f"[{', '.join(texts)}]"))
    with Client(wire.url, auth="none") as client:
        repayments = client.repayments.of_loan("b-1", "l-1")

    assert [len(repayment.issues) for repayment in repayments] == [int(number == 77) for number in range(200)]
    assert [repayment.uuid for repayment in repayments] == [f"r-{number}" for number in range(200)]


# Sessions, forks, threads


def test_a_custom_session_keeps_its_tls_setting_and_headers(tmp_path: Path) -> None:
    path = write_self_signed_certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    session = requests.Session()
    session.headers["X-Gateway"] = "branch-7"
    session.verify = False
    with Wire(context) as wire:
        wire.answer(response(LOAN))
        with pytest.warns(match="Unverified"), Client(wire.url, auth="none", session=session) as client:
            assert read(client).uuid == "l-1"

        assert "x-gateway: branch-7" in wire.heads[0]


def test_a_forked_process_enforces_time_limits(wire: Wire) -> None:
    """Web servers fork workers from a running process."""
    wire.answer(response(LOAN))
    with Client(wire.url, auth="none", time_limit=LIMIT_SECONDS, max_tries=1) as client:
        read(client)
        wire.answer(ENDLESS["headers"])
        child = os.fork()
        if not child:
            try:
                read(client)
            except Unavailable:
                os._exit(7)
            finally:
                os._exit(1)
        for _ in range(100):
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                break
            time.sleep(0.05)
        else:
            os.kill(child, 9)

    assert done
    assert os.waitstatus_to_exitcode(status) == 7


def test_calls_in_threads_have_separate_deadlines(wire: Wire) -> None:
    wire.answer(ENDLESS["body"])
    barrier = threading.Barrier(8)

    def time_call(number: int) -> float:
        with Client(
            wire.url, auth="none", time_limit=LIMIT_SECONDS * (1 + number % 2), max_tries=1
        ) as client:
            barrier.wait()
            started = time.monotonic()
            assert isinstance(catch_error(read, client), Unavailable)
            return time.monotonic() - started

    with ThreadPoolExecutor(8) as pool:
        seconds = list(pool.map(time_call, range(8)))

    assert min(seconds[1::2]) >= 2 * LIMIT_SECONDS
    assert max(seconds[::2]) < LIMIT_SECONDS + GRACE_SECONDS
    assert max(seconds[1::2]) < 2 * LIMIT_SECONDS + GRACE_SECONDS


def test_a_broken_connection_is_not_reused(wire: Wire) -> None:
    wire.answer(ENDLESS["body"], response('{"uuid": "l-2", "amount": 0.2}'))
    with Client(wire.url, auth="none", time_limit=LIMIT_SECONDS, max_tries=1) as client:
        catch_error(read, client)
        assert client.loans.get("b-1", "l-2").uuid == "l-2"
        wire.answer(cut, response(LOAN))
        catch_error(read, client)
        assert read(client).uuid == "l-1"
