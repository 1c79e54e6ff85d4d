"""Fetching statement documents: accepted and refused files, requests, redirects, and error messages."""

import gzip
import hashlib
import socket
import time
from collections.abc import Sequence
from datetime import date
from typing import Any

import pytest

from servicing import Client, DocumentRefused, ServicingError
from servicing.auth import BearerAuth, HmacAuth, sign
from servicing.sandbox import Sandbox
from tests.servicing.fetching import PDF, local_fetcher, read_document, refusal_message, unavailable_message
from tests.servicing.wire import Reply, Wire, closing, cut, half, response, silent, trickling, unending

OK = b"HTTP/1.1 200 OK\r\n"


def redirect(to: str, status: int = 302, **headers: str) -> bytes:
    return response("", status, {"Location": to, **headers})


def chunked(*pieces: bytes) -> bytes:
    body = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body + b"0\r\n\r\n"


# Accepted documents


@pytest.fixture
def link(sandbox: Sandbox, service_client: Client) -> str:
    """A link to a statement, as the service returns it."""
    borrower_id = sandbox.world.borrower()["uuid"]
    line = sandbox.world.line(borrower_id, drawn="1200.25", opened=date(2026, 1, 5))
    sandbox.world.statement(line["uuid"], "2026-02-05")
    (statement,) = service_client.credit_lines.statement(borrower_id, line["uuid"]).statements
    assert statement.url
    return statement.url


def test_a_statement_is_downloaded_with_its_metadata(sandbox: Sandbox, link: str) -> None:
    with local_fetcher(sandbox.url).fetch(link) as document:
        content = b"".join(document)

    assert content.startswith(b"%PDF-")
    assert content.rstrip().endswith(b"%%EOF")
    assert document.sha256 == hashlib.sha256(content).hexdigest()
    assert (document.size, document.length) == (len(content), len(content))
    assert document.content_type == "application/pdf"


def test_hash_and_size_are_none_until_the_end(wire: Wire) -> None:
    wire.answer(response(PDF))
    with local_fetcher(wire.url).fetch(wire.url) as document:
        next(iter(document))
        assert (document.sha256, document.size) == (None, None)


def test_a_document_is_streamed_once_in_chunks(wire: Wire) -> None:
    wire.answer(response(PDF))
    with local_fetcher(wire.url).fetch(wire.url) as document:
        pieces = list(document)

        assert list(document) == []
    assert b"".join(pieces) == PDF
    assert max(map(len, pieces)) < 70_000


@pytest.mark.parametrize(
    "reply",
    [
        response(PDF),
        response(PDF, headers={"Content-Encoding": "identity"}),
        response(PDF, headers={"Content-Type": "text/plain"}),
        chunked(PDF[:3], PDF[3:100], PDF[100:]),
        b"HTTP/1.1 100 Continue\r\n\r\n" + response(PDF),
    ],
)
def test_a_pdf_is_accepted_regardless_of_framing_and_headers(wire: Wire, reply: Reply) -> None:
    wire.answer(reply)

    assert read_document(local_fetcher(wire.url), wire.url) == PDF


def test_a_document_without_a_length_ends_when_the_connection_closes(wire: Wire) -> None:
    wire.answer(closing(b"HTTP/1.0 200 OK\r\n\r\n" + PDF))
    with local_fetcher(wire.url).fetch(wire.url) as document:
        assert document.length is None
        assert b"".join(document) == PDF


def test_a_folded_content_type_is_joined_into_one_line(wire: Wire) -> None:
    wire.answer(response(PDF, headers={"Content-Type": "application/pdf;\r\n\tname=a"}))
    with local_fetcher(wire.url).fetch(wire.url) as document:
        assert document.content_type == "application/pdf; name=a"


# Refused documents


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ({"html": True}, "127.0.0.1 sent a file that isn’t a PDF."),
        ({"size": 200 * 1024 * 1024}, "The document is too large to be shown here."),
        ({"status": 404}, "127.0.0.1 returned status 404 instead of a document."),
        ({"status": 503}, "127.0.0.1 returned status 503 instead of a document."),
        (
            {"status": 302, "headers": {"Location": "http://169.254.169.254/latest/meta-data/"}},
            "The document is on 169.254.169.254, which isn’t an allowed document host.",
        ),
    ],
)
def test_a_refused_document_has_a_reason(
    sandbox: Sandbox, link: str, fault: dict[str, Any], why: str
) -> None:
    sandbox.fail_next("documents.fetch", **fault)

    assert refusal_message(local_fetcher(sandbox.url), link) == why


@pytest.mark.slow
def test_a_document_that_arrives_too_slowly_is_refused(sandbox: Sandbox, link: str) -> None:
    sandbox.fail_next("documents.fetch", drip=0.01)
    with local_fetcher(sandbox.url, time_limit=2).fetch(link) as document:
        with pytest.raises(DocumentRefused, match="took too long to arrive"):
            list(document)
        assert document.sha256 is None


@pytest.mark.parametrize("fault", [{"truncate": True}, {"cut_before": True}])
def test_a_document_is_unavailable_if_the_connection_is_cut(
    sandbox: Sandbox, link: str, fault: dict[str, Any]
) -> None:
    sandbox.fail_next("documents.fetch", **fault)

    assert (
        unavailable_message(local_fetcher(sandbox.url), link)
        == "No document from 127.0.0.1: the connection was cut."
    )


@pytest.mark.parametrize(
    "before",
    [b"", b" ", b"\n", b"\xef\xbb\xbf", b"\xff\xfe", b"\x1b%-12345X@PJL\r\n", b"\0" * 1019],
    ids=["none", "blank", "line", "utf8-mark", "utf16-mark", "printer", "most"],
)
def test_the_mark_of_a_pdf_may_lie_in_the_first_1024_bytes(wire: Wire, before: bytes) -> None:
    wire.answer(response(before + PDF))
    assert read_document(local_fetcher(wire.url), wire.url) == before + PDF


@pytest.mark.parametrize(
    "start",
    [
        b"",
        b"%PD",
        b"%pdf-1",
        b"\0" * 1020 + b"%PDF-1.7",
        b"<!doctype html><title>%PDF-1.7</title>",
        b"\xef\xbb\xbf<html><body>%PDF-1.7",
        b" \n<?xml version='1.0'?><e>%PDF-1.7</e>",
        "\ufeff<html>".encode("utf-16-le") + b"%PDF-1.7",
    ],
)
def test_a_file_without_the_mark_of_a_pdf_is_refused(wire: Wire, start: bytes) -> None:
    wire.answer(response(start, headers={"Content-Type": "application/pdf"}))

    assert refusal_message(local_fetcher(wire.url), wire.url) == "127.0.0.1 sent a file that isn’t a PDF."


@pytest.mark.parametrize("encoding", ["gzip", "br", "x-unknown", "identity, gzip"])
def test_a_compressed_document_is_refused_without_decompressing(wire: Wire, encoding: str) -> None:
    bomb = gzip.compress(PDF + bytes(8_000_000))
    wire.answer(response(bomb, headers={"Content-Encoding": encoding}))

    assert "compressed" in refusal_message(local_fetcher(wire.url), wire.url)


@pytest.mark.parametrize("status", [201, 204, 206, 300, 304, 401, 403, 410, 500])
def test_only_status_200_returns_a_document(wire: Wire, status: int) -> None:
    wire.answer(response(PDF, status))
    with pytest.raises(DocumentRefused) as caught:
        local_fetcher(wire.url).fetch(wire.url)

    assert caught.value.status == status


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_without_a_location_is_not_a_document(wire: Wire, status: int) -> None:
    wire.answer(response(PDF, status))

    assert f"status {status}" in refusal_message(local_fetcher(wire.url), wire.url)


@pytest.mark.parametrize(
    "start",
    [
        OK + b"\r\n%PDF-1.7",
        OK + b"Content-Length: nonsense\r\n\r\n%PDF-1.7",
        OK + b"Content-Length: -1\r\n\r\n%PDF-1.7",
        OK + b"Transfer-Encoding: chunked\r\n\r\n9\r\n%PDF-1.7\n\r\n-1\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n%PDF-1.7",
        OK + b"Transfer-Encoding: chunked\r\n\r\nffffffffff\r\n%PDF-1.7",
        OK + b"Content-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\nffffff\r\n%PDF-1.7",
    ],
)
def test_an_endless_document_is_refused_for_any_declared_length(wire: Wire, start: bytes) -> None:
    wire.answer(unending(start))

    assert "too large" in refusal_message(local_fetcher(wire.url, max_bytes=1_000_000), wire.url)


def test_bytes_beyond_the_content_length_are_ignored(wire: Wire) -> None:
    wire.answer(response(PDF, headers={"Content-Length": "9"}))

    assert read_document(local_fetcher(wire.url), wire.url) == PDF[:9]


@pytest.mark.parametrize("length", [b"-5", b"-", b"?", b""])
def test_an_invalid_chunk_length_is_reported_as_a_cut_connection(wire: Wire, length: bytes) -> None:
    wire.answer(OK + b"Transfer-Encoding: chunked\r\n\r\n9\r\n%PDF-1.7\n\r\n" + length + b"\r\n\r\n")

    assert unavailable_message(local_fetcher(wire.url), wire.url).endswith("the connection was cut.")


def test_a_document_may_have_exactly_the_maximum_size(wire: Wire) -> None:
    wire.answer(response(PDF))

    assert read_document(local_fetcher(wire.url, max_bytes=len(PDF)), wire.url) == PDF
    assert "too large" in refusal_message(local_fetcher(wire.url, max_bytes=len(PDF) - 1), wire.url)


@pytest.mark.slow
@pytest.mark.parametrize(
    "reply",
    [
        silent,
        trickling(b""),
        trickling(OK + b"X-Slow: "),
        trickling(b"HTTP/1.1 100 Continue\r\n\r\n"),
    ],
)
def test_a_response_that_starts_too_late_is_unavailable(wire: Wire, reply: Reply) -> None:
    wire.answer(reply)

    sentence = "No document from 127.0.0.1: it took too long."
    assert unavailable_message(local_fetcher(wire.url, time_limit=0.5), wire.url) == sentence


@pytest.mark.parametrize(
    "reply", [b"220 mail.lender.example ESMTP\r\n\r\n", OK + b"X: 1\r\n" * 200 + b"\r\n"]
)
def test_a_response_that_is_not_http_is_unavailable(wire: Wire, reply: Reply) -> None:
    wire.answer(reply)

    assert unavailable_message(local_fetcher(wire.url), wire.url).endswith("the response can’t be read.")


@pytest.mark.slow
def test_an_endless_trickle_of_chunks_is_refused(wire: Wire) -> None:
    wire.answer(trickling(OK + b"Transfer-Encoding: chunked\r\n\r\n9\r\n%PDF-1.7\n\r\n"))

    assert "took too long" in refusal_message(local_fetcher(wire.url, time_limit=2), wire.url)


def test_a_closed_port_is_reported_as_a_refused_connection(wire: Wire) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"

    assert (
        unavailable_message(local_fetcher(url), url)
        == "No document from 127.0.0.1: the connection was refused."
    )


def test_a_timeout_before_connecting_is_reported(wire: Wire) -> None:
    def resolve_slowly(host: str) -> Sequence[str]:
        time.sleep(0.05)
        return ["127.0.0.1"]

    assert "too long" in unavailable_message(
        local_fetcher(wire.url, time_limit=0.01, resolve=resolve_slowly), wire.url
    )
    assert wire.connections == 0


# Requests


def test_the_request_has_only_necessary_headers(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    wire.answer(response(PDF))
    read_document(local_fetcher(wire.url), f"{wire.url}/a%20b/c.pdf?key=k%2Fk&x=1#page=2")

    assert wire.heads[0].splitlines() == [
        "get /a%20b/c.pdf?key=k%2fk&x=1 http/1.1",
        f"host: 127.0.0.1:{wire.port}",
        "accept: application/pdf",
        "accept-encoding: identity",
        "connection: close",
        "user-agent: servicing",
    ]


def test_each_redirect_is_signed_for_its_own_url(wire: Wire) -> None:
    wire.answer(redirect("/second?x=1"), response(PDF))
    read_document(
        local_fetcher(wire.url, auth=HmacAuth("desk", "secret", clock=lambda: 1.5)), f"{wire.url}/first#top"
    )

    for head, path in zip(wire.heads, ["/first", "/second?x=1"], strict=True):
        assert f"x-signature: {sign('secret', wire.url + path, '', '1500')}" in head


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_other_hosts_get_no_credentials(wire: Wire, name: str) -> None:
    wire.answer(response(PDF))
    with Wire() as service:
        service.answer(redirect(f"http://{name}:{wire.port}/"), redirect(f"http://{name}:{wire.port}/"))
        fetcher = local_fetcher(service.url, auth=BearerAuth("token"))
        read_document(fetcher, service.url)
        read_document(fetcher, f"http://localhost:{service.port}/")
        signed = [("authorization: bearer token" in head) for head in service.heads]

    assert signed == [True, False]
    assert not [head for head in wire.heads if "authorization" in head]


def test_the_service_gets_credentials_after_a_redirect(wire: Wire) -> None:
    wire.answer(response(PDF))
    with Wire() as other_host:
        other_host.answer(redirect(wire.url))
        read_document(local_fetcher(wire.url, auth=BearerAuth("token")), other_host.url)

        assert "authorization" not in other_host.heads[0]
    assert "authorization: bearer token" in wire.heads[0]
    assert f"host: 127.0.0.1:{wire.port}\r\n" in wire.heads[0]


def test_cookies_are_not_sent_back(wire: Wire) -> None:
    wire.answer(redirect("/next", **{"Set-Cookie": "session=1"}), response(PDF))
    read_document(local_fetcher(wire.url), wire.url)

    assert "cookie" not in wire.heads[1]


# Redirects


def test_three_redirects_are_followed_but_not_a_fourth(wire: Wire) -> None:
    wire.answer(
        redirect("/1"),
        redirect("2", 301),
        redirect(f"//127.0.0.1:{wire.port}/x/../3?y#z", 308),
        response(PDF),
    )
    assert read_document(local_fetcher(wire.url), wire.url) == PDF
    assert [head.split()[1] for head in wire.heads] == ["/", "/1", "/2", "/3?y"]

    wire.answer(redirect("/again"))
    assert "more than 3 times" in refusal_message(local_fetcher(wire.url), wire.url)


@pytest.mark.parametrize(
    ("onward", "why"),
    [
        ("http://10.0.0.1/", "is on 10.0.0.1"),
        ("//metadata.google.internal/", "is on metadata.google.internal"),
        ("http://[fd00:ec2::254]/", "is on fd00:ec2::254"),
        ("file:///etc/passwd", "https"),
        ("gopher://127.0.0.1:70/_", "https"),
        ("http://me:secret@127.0.0.1/", "username"),
        ("http://[", "isn’t valid"),
        ("http://127.0.0.1\\@10.0.0.1/", "isn’t valid"),
        ("http://127.0.0.1:99999/", "isn’t valid"),
    ],
)
def test_redirects_are_checked_like_the_original_link(wire: Wire, onward: str, why: str) -> None:
    wire.answer(redirect(onward), response(PDF))

    assert why in refusal_message(local_fetcher(wire.url), wire.url)
    assert len(wire.requests) == 1


def test_a_host_is_resolved_again_for_every_redirect(wire: Wire) -> None:
    answers = [["127.0.0.1"], ["127.0.0.1", "10.0.0.1"]]
    wire.answer(redirect("/again"), response(PDF))

    assert "internal" in refusal_message(
        local_fetcher(wire.url, resolve=lambda host: answers.pop(0)), wire.url
    )
    assert (len(wire.requests), answers) == (1, [])


# Error messages


@pytest.mark.parametrize(
    "reply", [cut, half, response("<html>"), response("", 403), redirect("https://x?k=hush")]
)
def test_errors_and_logs_hide_the_query_of_a_link(
    wire: Wire, caplog: pytest.LogCaptureFixture, reply: Reply
) -> None:
    caplog.set_level(0)
    wire.answer(reply)
    with pytest.raises(ServicingError) as caught:
        read_document(local_fetcher(wire.url), f"{wire.url}/a.pdf?key=hush")

    error = caught.value
    assert "hush" not in f"{error} {error!r} {vars(error)} {caplog.text}"
    assert (error.operation, error.__cause__, error.__context__) == ("documents.fetch", None, None)
