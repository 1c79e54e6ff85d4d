"""Calls over a real socket: requests, retries, writes, and errors."""

import gzip
import re
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
import responses
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from servicing import (
    Client,
    ConfigurationError,
    InvalidInput,
    Loan,
    NotSent,
    OutcomeUnknown,
    ProtocolError,
    Rejected,
    ServicingError,
    Unavailable,
)
from tests.servicing.wire import Reply, Wire, cut, dripping, half, response, silent

pytestmark = pytest.mark.core

LOAN = '{"uuid": "l-1", "amount": 0.1}'
STATEMENT = '{"past_due_balance": 0.1}'
APPLICATION = '{"uuid": "a-1", "status": {"decision": "APPROVED"}}'
SECRET = "3f2b8c1e-9d47-4a60-b1c5-7e8f90a2d364"


@pytest.fixture
def client(wire: Wire, pauses: list[float]) -> Iterator[Client]:
    with Client(wire.url, client_id="desk", secret=SECRET, timeout=5, sleep=pauses.append) as client:
        yield client


def read(client: Client) -> Loan:
    return client.loans.get("b-1", "l-1")


def write(client: Client) -> object:
    return client.applications.submit("b-1", amount=Decimal("25000.00"))


def catch_error(call_client: Callable[[Client], object], client: Client) -> ServicingError:
    with pytest.raises(ServicingError) as caught:
        call_client(client)
    return caught.value


# Requests and answers


READS: list[Callable[[Client], object]] = [
    lambda client: client.loans.get("b-1", "l-1"),
    lambda client: client.applications.get_for_line("b-1", "a-1"),
    lambda client: client.credit_lines.statement("b-1", "c-1"),
    lambda client: client.repayments.of_loan("b-1", "l-1"),
    lambda client: client.repayments.of_line("b-1", "c-1"),
    lambda client: client.messages.list(start_date=date(2026, 5, 1), limit=5),
]


@pytest.mark.parametrize(
    ("options", "typed"),
    [
        ({"message_filters": "query"}, []),
        ({"message_filters": "body"}, [len(READS) - 1]),
        ({"message_filters": "body", "message_content_type": False}, []),
    ],
)
def test_reads_have_a_content_type_only_for_filters_in_a_body(
    wire: Wire, options: dict[str, Any], typed: list[int]
) -> None:
    wire.answer(response(LOAN), response(APPLICATION), response(STATEMENT), *[response("[]")] * 3)
    with Client(wire.url, auth="none", **options) as client:
        for call_client in READS:
            call_client(client)

    assert len(wire.heads) == len(READS)
    assert [number for number, head in enumerate(wire.heads) if "content-type" in head] == typed
    assert all("content-type: application/json" in wire.heads[number] for number in typed)


def test_a_write_sends_json_with_its_content_type(wire: Wire, client: Client) -> None:
    wire.answer(response(APPLICATION))
    write(client)

    assert wire.heads[0].startswith("post /v1/users/b-1/loans/applications http/1.1")
    assert "content-type: application/json" in wire.heads[0]
    assert wire.requests[0].endswith(b'\r\n\r\n{"amount":25000.00}')


def test_message_filters_can_be_sent_in_the_body(wire: Wire) -> None:
    wire.answer(response("[]"))
    with Client(wire.url, auth="none", message_filters="body") as client:
        client.messages.list(start_date=date(2026, 5, 1), event="payment.succeeded", limit=5)
        client.messages.list()

    assert wire.requests[0].endswith(b'{"start_date":"2026-05-01","event":"payment.succeeded","limit":5}')
    assert wire.heads[0].startswith("get /v1/webhooks/endpoints/messages http/1.1")
    assert wire.requests[1].endswith(b"\r\n\r\n")


def test_requests_include_the_base_url_path(wire: Wire) -> None:
    wire.answer(response(LOAN))
    with Client(f"{wire.url}/lending/", auth="none") as client:
        read(client)

    assert wire.heads[0].startswith("get /lending/v1/users/b-1/loan/l-1 ")


def test_reads_share_a_connection_but_each_write_opens_its_own(wire: Wire, client: Client) -> None:
    wire.answer(response(LOAN))
    for call_client in (read, read, read, write, write):
        call_client(client)

    assert wire.connections == 3


def test_threads_may_share_a_client(wire: Wire, client: Client) -> None:
    wire.answer(response(LOAN))
    with ThreadPoolExecutor(8) as pool:
        loans = list(pool.map(lambda _: read(client), range(80)))

    assert {loan.uuid for loan in loans} == {"l-1"}
    assert len(wire.requests) == 80


def test_cookies_are_not_sent_back(wire: Wire, client: Client) -> None:
    wire.answer(response(LOAN, headers={"Set-Cookie": "session=1"}))
    read(client)
    read(client)

    assert "cookie" not in wire.heads[1]


def test_proxies_from_the_environment_are_not_used(
    wire: Wire, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    wire.answer(response(LOAN))

    assert read(client).uuid == "l-1"


def test_a_compressed_answer_can_be_read(wire: Wire, client: Client) -> None:
    wire.answer(response(gzip.compress(LOAN.encode()), headers={"Content-Encoding": "gzip"}))

    assert read(client).amount == Decimal("0.1")


def test_a_chunked_answer_can_be_read(wire: Wire, client: Client) -> None:
    wire.answer(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        b'8\r\n{"uuid":\r\n16\r\n "l-1", "amount": 0.1}\r\n0\r\n\r\n'
    )

    assert read(client).uuid == "l-1"


def test_a_token_is_sent_on_every_try(wire: Wire, pauses: list[float]) -> None:
    wire.answer(response(status=503), response(LOAN))
    with Client(wire.url, auth="bearer", token="t-1", sleep=pauses.append) as client:
        read(client)

    assert ["authorization: bearer t-1" in head for head in wire.heads] == [True, True]


# Retries


@pytest.mark.parametrize("reply", [response(status=s) for s in (429, 502, 503, 504)] + [cut, half])
def test_a_read_is_retried_until_it_succeeds(
    wire: Wire, client: Client, pauses: list[float], reply: Reply
) -> None:
    wire.answer(reply, reply, response(LOAN))

    assert read(client).uuid == "l-1"
    assert len(pauses) == 2
    assert all(0.5 <= pause <= 5 for pause in pauses)


@pytest.mark.parametrize("reply", [response(status=503), response(status=429), cut, half])
def test_a_read_fails_after_three_tries(wire: Wire, client: Client, reply: Reply) -> None:
    wire.answer(reply)

    assert isinstance(catch_error(read, client), Unavailable)
    assert len(wire.requests) == 3


@pytest.mark.parametrize("status", [500, 501, 400, 404])
def test_other_error_statuses_are_not_retried(wire: Wire, client: Client, status: int) -> None:
    wire.answer(response(status=status))
    catch_error(read, client)

    assert len(wire.requests) == 1


def test_every_try_has_a_new_signature(wire: Wire) -> None:
    wire.answer(response(status=503), response(LOAN))
    with Client(wire.url, client_id="desk", secret=SECRET, sleep=lambda _: time.sleep(0.002)) as client:
        read(client)

    epochs, signatures = (
        re.findall(f"{name}: (.*)\r", "\n".join(wire.heads)) for name in ("epoch", "x-signature")
    )
    assert len(set(epochs)) == len(set(signatures)) == 2


def test_a_retry_waits_the_seconds_in_retry_after(wire: Wire, client: Client, pauses: list[float]) -> None:
    wire.answer(response(status=503, headers={"Retry-After": "7"}), response(LOAN))
    read(client)

    assert pauses == [7]


def test_a_retry_waits_until_the_date_in_retry_after(wire: Wire, client: Client, pauses: list[float]) -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=15), usegmt=True)
    wire.answer(response(status=503, headers={"Retry-After": date}), response(LOAN))
    read(client)

    assert 5 < pauses[0] <= 15


def test_a_retry_after_beyond_the_time_limit_fails_at_once(
    wire: Wire, client: Client, pauses: list[float]
) -> None:
    wire.answer(response(status=503, headers={"Retry-After": "21600"}))

    assert isinstance(catch_error(read, client), Unavailable)
    assert pauses == []


def test_an_invalid_retry_after_is_ignored(wire: Wire, client: Client, pauses: list[float]) -> None:
    wire.answer(response(status=503, headers={"Retry-After": "soon"}), response(LOAN))
    read(client)

    assert pauses[0] <= 5


@pytest.mark.parametrize("reply", [silent, dripping])
def test_a_read_times_out_at_its_time_limit(wire: Wire, reply: Reply) -> None:
    wire.answer(reply)
    with Client(wire.url, auth="none", timeout=(5, 0.2), time_limit=0.3) as client:
        error = catch_error(read, client)

    assert isinstance(error, Unavailable)
    assert "took too long" in error.message


# Writes


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(cut, id="cut"),
        pytest.param(half, id="cut-in-the-middle"),
        pytest.param(response(status=500), id="500"),
        pytest.param(response(status=503), id="503"),
        pytest.param(response("<html>All is well</html>"), id="html"),
        pytest.param(response(""), id="empty"),
        pytest.param(response('{"uuid": '), id="truncated-json"),
        pytest.param(response("{}"), id="no-uuid"),
        pytest.param(response("[]"), id="not-an-object"),
        pytest.param(response(status=303, headers={"Location": "/v1/elsewhere"}), id="redirect"),
    ],
)
def test_a_write_without_a_clear_answer_has_an_unknown_outcome(
    wire: Wire, client: Client, pauses: list[float], reply: Reply
) -> None:
    wire.answer(reply)

    assert isinstance(catch_error(write, client), OutcomeUnknown)
    assert len(wire.requests) == 1
    assert pauses == []


@pytest.mark.parametrize("reply", [silent, dripping])
def test_a_write_that_times_out_has_an_unknown_outcome(wire: Wire, reply: Reply) -> None:
    wire.answer(reply)
    with Client(wire.url, auth="none", timeout=(5, 0.2), time_limit=0.3) as client:
        error = catch_error(write, client)

    assert isinstance(error, OutcomeUnknown)
    assert len(wire.arrived()) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422, 429])
def test_a_rejected_write_is_sent_once_with_a_known_outcome(wire: Wire, client: Client, status: int) -> None:
    wire.answer(response('{"message": "No."}', status))
    error = catch_error(write, client)

    assert not isinstance(error, OutcomeUnknown | Unavailable)
    assert (error.status, error.reasons, len(wire.requests)) == (status, ("No.",), 1)


def test_a_write_to_a_closed_port_is_not_sent(pauses: list[float]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    with Client(f"http://127.0.0.1:{port}", auth="none", sleep=pauses.append) as client:
        write_error, read_error = catch_error(write, client), catch_error(read, client)

    assert isinstance(write_error, NotSent)
    assert "connection was refused" in write_error.message
    assert isinstance(read_error, Unavailable)
    assert len(pauses) == 2


def test_a_write_to_an_unknown_host_is_not_sent() -> None:
    with Client("http://lender.invalid", auth="none") as client:
        error = catch_error(write, client)

    assert isinstance(error, NotSent)
    assert "host name is unknown" in error.message


def test_a_write_that_times_out_connecting_is_not_sent() -> None:
    with socket.socket() as busy, socket.socket() as waiting:
        busy.bind(("127.0.0.1", 0))
        busy.listen(0)
        waiting.connect(busy.getsockname())
        url = f"http://127.0.0.1:{busy.getsockname()[1]}"
        with Client(url, auth="none", timeout=(0.2, 1)) as client:
            error = catch_error(write, client)

    assert isinstance(error, NotSent)
    assert "no connection in time" in error.message


def test_a_write_to_an_untrusted_server_is_not_sent(tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(write_self_signed_certificate(tmp_path))
    with Wire(context) as wire, Client(wire.url, auth="none") as client:
        error = catch_error(write, client)

    assert isinstance(error, NotSent)
    assert "no secure connection" in error.message
    assert wire.requests == []


def test_a_write_is_not_sent_after_a_failed_tls_handshake(wire: Wire) -> None:
    wire.answer(cut)
    with Client(wire.url.replace("http:", "https:"), auth="none", timeout=0.3) as client:
        assert isinstance(catch_error(write, client), NotSent)


def write_self_signed_certificate(folder: Path) -> Path:
    """Write a self-signed certificate and its key to one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = folder / "server.pem"
    path.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
    return path


# Errors


@pytest.mark.parametrize("call_client", [read, write])
@pytest.mark.parametrize("reply", [cut, response('{"message": "No."}', 400), response("?")])
def test_errors_name_the_operation_and_hide_the_request_body(
    wire: Wire, client: Client, call_client: Callable[[Client], object], reply: Reply
) -> None:
    wire.answer(reply)
    error = catch_error(call_client, client)

    assert error.operation == ("loans.get" if call_client is read else "applications.submit")
    assert str(error).startswith(f"{error.request_id} {error.operation}: ")
    assert f"x-request-id: {error.request_id}" in wire.heads[-1]
    assert error.__cause__ is None
    assert "25000" not in str(error)


def test_a_redirect_is_not_followed(wire: Wire, client: Client) -> None:
    wire.answer(response(status=302, headers={"Location": f"{wire.url}/v1/elsewhere"}))

    assert isinstance(catch_error(read, client), ProtocolError)
    assert len(wire.requests) == 1


@pytest.mark.parametrize("body", ["<html></html>", "", "[]", "{}", "NaN"])
def test_an_unreadable_answer_to_a_read_is_a_protocol_error(wire: Wire, client: Client, body: str) -> None:
    wire.answer(response(body))

    assert isinstance(catch_error(read, client), ProtocolError)


def test_an_oversized_answer_is_a_protocol_error(wire: Wire, client: Client) -> None:
    bomb = gzip.compress(b" " * 33 * 1024 * 1024, compresslevel=1)
    wire.answer(response(bomb, headers={"Content-Encoding": "gzip"}))

    assert isinstance(catch_error(read, client), ProtocolError)


def test_a_200_with_only_an_error_is_a_rejection(wire: Wire, client: Client) -> None:
    wire.answer(response('{"error": "amount is missing"}'))
    error = catch_error(write, client)

    assert isinstance(error, Rejected)
    assert error.message == "amount is missing"


def test_a_202_without_the_record_is_an_unknown_outcome(wire: Wire, client: Client) -> None:
    wire.answer(response('{"message": "Accepted for processing"}', 202))
    error = catch_error(write, client)

    assert isinstance(error, OutcomeUnknown)
    assert error.reasons == ("Accepted for processing",)
    assert "The service said: Accepted for processing" in error.message


@responses.activate
def test_an_os_error_is_reported_as_a_cut_connection(client: Client, wire: Wire) -> None:
    responses.get(f"{wire.url}/v1/users/b-1/loan/l-1", body=OSError("something of the system"))

    assert "connection was cut" in catch_error(read, client).message


# Input rejected before a request is sent


@pytest.mark.parametrize("bad", ["", "..", "a/b", "l-1?x=1", "l 1", "l" * 101, "é", None])
def test_an_id_that_would_change_the_path_is_rejected(wire: Wire, client: Client, bad: Any) -> None:
    with pytest.raises(InvalidInput) as caught:
        client.loans.get("b-1", bad)

    assert list(caught.value.problems) == ["loan_id"]
    assert wire.requests == []


@pytest.mark.parametrize(
    "url",
    ["", "lender.example", "ftp://lender.example", "http://", "http://a:b@lender.example", "http://x/?a=1",
     "http://x/#a", "http://x:port"],
)  # fmt: skip
def test_an_invalid_base_url_is_explained(url: str) -> None:
    with pytest.raises(ConfigurationError, match="must look like https://"):
        Client(url, auth="none")
