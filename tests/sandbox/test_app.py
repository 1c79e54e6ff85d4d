"""Requests to the sandbox over real HTTP: routing, signatures, bodies, connections, recorded calls."""

import http.client
import json
import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import requests

from servicing.sandbox import Sandbox
from servicing.sandbox.endpoints import OPERATIONS
from tests.sandbox.caller import Caller, sign_request

JSON_TYPE = {"Content-Type": "application/json; charset=utf-8"}


@pytest.fixture
def paths(service: Sandbox) -> dict[str, str]:
    """The path of every GET, by operation."""
    user = service.world.borrower()["uuid"]
    loan = service.world.loan(user)["uuid"]
    line = service.world.line(user)["uuid"]
    application = service.world.line_application(user)["uuid"]
    return {
        "applications.get_for_line": f"/v1/users/{user}/loc/applications/{application}",
        "loans.get": f"/v1/users/{user}/loan/{loan}",
        "credit_lines.statement": f"/v1/users/{user}/loc/{line}/statements",
        "repayments.of_line": f"/v1/users/{user}/loc/{line}/payments",
        "repayments.of_loan": f"/v1/users/{user}/loans/{loan}/payments",
        "messages.list": "/v1/webhooks/endpoints/messages",
        "documents.fetch": service.world.statement(line, "2026-03-01")["url"],
    }


def test_every_operation_of_the_interface_has_a_handler() -> None:
    assert set(OPERATIONS) >= {
        "oauth2.token",
        "borrowers.create_commercial",
        "borrowers.update",
        "borrowers.update_key_person",
        "applications.submit",
        "applications.get_for_line",
        "loans.get",
        "credit_lines.statement",
        "repayments.of_loan",
        "repayments.of_line",
        "messages.list",
        "documents.fetch",
    }


def test_every_read_succeeds(caller: Caller, paths: dict[str, str]) -> None:
    assert {name: caller.get(path).status_code for name, path in paths.items()} == dict.fromkeys(paths, 200)


def test_a_json_content_type_breaks_exactly_four_reads(caller: Caller, paths: dict[str, str]) -> None:
    broken = {
        name for name, path in paths.items() if caller.send("GET", path, headers=JSON_TYPE).status_code == 500
    }
    assert broken == {
        "applications.get_for_line",
        "loans.get",
        "credit_lines.statement",
        "repayments.of_line",
    }


def test_a_record_is_not_found_under_another_borrower(
    service: Sandbox, caller: Caller, paths: dict[str, str]
) -> None:
    owner, stranger = service.world.users()[0]["uuid"], service.world.individual()["uuid"]
    owned = [path for path in paths.values() if owner in path]
    answers = [caller.get(path.replace(owner, stranger)) for path in owned]
    assert [answer.status_code for answer in answers] == [404] * len(owned)
    assert {type(answer.json()["message"]) for answer in answers} == {str}


def test_wrong_paths_and_methods_are_rejected(caller: Caller, paths: dict[str, str]) -> None:
    assert caller.get(paths["loans.get"].replace("/loan/", "/loans/")).status_code == 404
    assert caller.get(paths["repayments.of_loan"].replace("/loans/", "/loan/")).status_code == 404
    assert caller.get("/v1/users").status_code == 405


def test_a_wrong_signature_is_forbidden_and_creates_no_user(
    service: Sandbox, caller: Caller, business: dict[str, Any]
) -> None:
    answer = requests.post(
        service.url + "/v1/users", json=business, headers=sign_request("http://other/"), timeout=5
    )
    assert (answer.status_code, list(answer.json())) == (403, ["message"])
    assert service.world.users() == []


def test_an_old_signature_is_forbidden(caller: Caller) -> None:
    assert caller.get("/v1/webhooks/endpoints/messages", epoch="1700000000000").status_code == 403


def test_headers_with_underscores_are_read(tmp_path: Path) -> None:
    names = ("client_id", "request_signature", "request_epoch", "body_md5")
    with Sandbox(tmp_path / "s.db", auth_headers=names) as service:
        url = service.url + "/v1/webhooks/endpoints/messages"
        headers = dict(zip(names, sign_request(url).values(), strict=True))
        assert requests.get(url, headers=headers, timeout=5).status_code == 200


def test_no_signature_is_needed_without_authentication(tmp_path: Path) -> None:
    with Sandbox(tmp_path / "s.db", auth="none") as service:
        answer = requests.get(service.url + "/v1/webhooks/endpoints/messages", timeout=5)
        assert answer.json() == {"pagination": {"offset": 0, "limit": 25, "total": 0}, "data": []}


def test_a_document_link_needs_no_signature(service: Sandbox, paths: dict[str, str]) -> None:
    answer = requests.get(service.url + paths["documents.fetch"], timeout=5)
    assert answer.headers["Content-Type"] == "application/pdf"
    assert answer.content.startswith(b"%PDF-")


def test_calls_are_recorded_unchanged(service: Sandbox, caller: Caller) -> None:
    caller.send("GET", "/v1/webhooks/endpoints/messages?limit=3", b'{"event": "x"}', {"X-Request-Id": "r-1"})
    call = service.calls[-1]
    assert (call.operation, call.method, call.path) == (
        "messages.list",
        "GET",
        "/v1/webhooks/endpoints/messages",
    )
    assert (call.query, call.body, call.status) == ({"limit": "3"}, b'{"event": "x"}', 200)
    assert call.headers["x-request-id"] == "r-1"


def test_a_call_to_an_unknown_path_is_recorded(service: Sandbox, caller: Caller) -> None:
    assert caller.get("/v1/nothing").json() == {"message": "GET /v1/nothing: Not Found"}
    assert (service.calls[-1].operation, service.calls[-1].status) == ("", 404)


def test_an_invalid_body_is_rejected(service: Sandbox, caller: Caller) -> None:
    for body in (b"{", b"\xff\xfe", b'{"amount": NaN}', b'{"amount": 1e99999999999999999999}', b"[" * 9999):
        answer = caller.send("POST", "/v1/users", body, JSON_TYPE)
        assert answer.status_code in (400, 403), body
    assert caller.post("/v1/users", ["a", "list"]).json() == {"message": "must be an object"}


def test_a_connection_serves_many_requests(service: Sandbox) -> None:
    host = service.url.removeprefix("http://")
    connection = http.client.HTTPConnection(host, timeout=5)
    path = "/v1/webhooks/endpoints/messages"
    for body in (None, b"{}", b"not json", None):
        headers = sign_request(service.url + path, body or b"")
        connection.request("GET", path, body, headers)
        answer = connection.getresponse()
        assert len(answer.read()) == int(answer.headers["Content-Length"])
    assert connection.sock is not None
    connection.close()


CHUNKED = b"Transfer-Encoding: chunked\r\n"


@pytest.mark.parametrize(
    ("request_tail", "status"),
    [
        (b"Content-Length: 99999999999\r\n\r\n", 413),
        (b"Content-Length: -1\r\n\r\n", 411),
        (b"Content-Length: 1_0\r\n\r\n", 411),
        (b"Transfer-Encoding: gzip, chunked\r\n\r\n", 400),
        (b"Content-Length: 2\r\n" + CHUNKED + b"\r\n0\r\n\r\n", 400),
        (CHUNKED + b"\r\nffffffff\r\n", 413),
        (CHUNKED + b"\r\n-1\r\n", 400),
        (CHUNKED + b"\r\n0x1\r\n", 400),
        (CHUNKED + b"\r\n2\r\n{}garbage\r\n", 400),
    ],
)
def test_a_body_with_an_invalid_length_is_rejected(
    service: Sandbox, request_tail: bytes, status: int
) -> None:
    host, port = service.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=5) as connection:
        connection.sendall(b"POST /v1/users HTTP/1.1\r\nHost: here\r\n" + request_tail)
        answer = connection.makefile("rb").read()
    assert int(answer.split()[1]) == status
    assert service.calls == []


def test_a_chunked_body_is_read_and_the_connection_stays_open(
    service: Sandbox, business: dict[str, Any]
) -> None:
    body = json.dumps(business).encode()
    connection = http.client.HTTPConnection(service.url.removeprefix("http://"), timeout=5)
    for path, pieces in (("/v1/users", [body[:7], body[7:40], body[40:]]), ("/v1/users", [body])):
        headers = sign_request(service.url + path, body) | JSON_TYPE
        connection.request("POST", path, iter(pieces), headers, encode_chunked=True)
        answer = connection.getresponse()
        assert (answer.status, json.loads(answer.read())["email"]) == (200, business["email"])
    connection.close()
    assert [call.body for call in service.calls] == [body, body]


def test_chunk_extensions_and_trailers_are_ignored(service: Sandbox) -> None:
    host, port = service.url.removeprefix("http://").split(":")
    path = "/v1/webhooks/endpoints/messages"
    head = {
        **sign_request(service.url + path, b'{"limit":1}'),
        "Host": f"{host}:{port}",
        "Connection": "close",
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in head.items()).encode()
    chunks = b'B ;a="b"\r\n{"limit":1}\r\n0;last\r\nX-Sum: 1\r\n\r\n'
    with socket.create_connection((host, int(port)), timeout=5) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\n".encode() + lines + CHUNKED + b"\r\n" + chunks)
        answer = connection.makefile("rb").read()
    assert b'"limit":1' in answer


def test_an_incomplete_chunked_body_is_ignored(service: Sandbox) -> None:
    host, port = service.url.removeprefix("http://").split(":")
    for tail in (b"", b"5\r\n{}", b"2\r\n{}\r\n", b"2\r\n{}\r\n0\r\n", b"2" + b";" * 9000):
        with socket.create_connection((host, int(port)), timeout=5) as connection:
            connection.sendall(b"POST /v1/users HTTP/1.1\r\nHost: here\r\n" + CHUNKED + b"\r\n" + tail)
            connection.shutdown(socket.SHUT_WR)
            assert connection.makefile("rb").read() == b""
    assert service.calls == []


def test_an_internal_error_returns_500(
    service: Sandbox, caller: Caller, paths: dict[str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    (paper,) = service.world.store.all("statement")
    paper.private = {}
    service.world.store.update(paper)
    answer = caller.get(paths["documents.fetch"])
    assert (answer.status_code, answer.json()) == (500, {"message": "Internal server error"})
    assert "KeyError" in capfd.readouterr().err


def test_a_truncated_body_is_ignored(service: Sandbox, business: dict[str, Any]) -> None:
    body = json.dumps(business).encode()
    headers = sign_request(service.url + "/v1/users", body) | JSON_TYPE
    connection = http.client.HTTPConnection(service.url.removeprefix("http://"), timeout=5)
    connection.request("POST", "/v1/users", body[:-1], headers | {"Content-Length": str(len(body))})
    connection.sock.shutdown(socket.SHUT_WR)
    with pytest.raises(http.client.RemoteDisconnected):
        connection.getresponse()
    connection.close()
    assert service.calls == []


def test_a_restart_closes_connections_and_keeps_the_address(
    service: Sandbox, caller: Caller, paths: dict[str, str]
) -> None:
    assert caller.get(paths["loans.get"]).status_code == 200
    before = service.url
    service.stop()
    with pytest.raises(requests.ConnectionError):
        caller.get(paths["loans.get"])
    service.start()
    assert service.url == before
    assert caller.get(paths["loans.get"]).status_code == 200


def test_a_stop_sends_a_delayed_answer_at_once(service: Sandbox, caller: Caller) -> None:
    service.fail_next("messages.list", delay=60)
    answers: list[int] = []
    path = "/v1/webhooks/endpoints/messages"
    thread = threading.Thread(target=lambda: answers.append(caller.get(path).status_code))
    thread.start()
    while not service.calls:
        time.sleep(0.01)
    service.stop()
    service.start()
    thread.join(5)
    assert answers == [200]


def test_a_reset_deletes_data_faults_and_calls(
    service: Sandbox, caller: Caller, paths: dict[str, str]
) -> None:
    service.world.advance(3)
    service.fail_next("*", status=503, times=None)
    caller.get(paths["loans.get"])
    service.reset()
    assert (service.world.users(), service.calls) == ([], [])
    assert caller.get("/v1/webhooks/endpoints/messages").json()["pagination"]["total"] == 0
