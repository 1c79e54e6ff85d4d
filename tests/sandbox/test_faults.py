"""Injected faults, as a caller sees them."""

import http.client
import socket
from typing import Any

import pytest
import requests

from servicing.sandbox import Sandbox
from tests.sandbox.caller import Caller, sign_request

MESSAGES = "/v1/webhooks/endpoints/messages"


def test_a_cut_after_commit_creates_the_borrower(
    service: Sandbox, caller: Caller, business: dict[str, Any]
) -> None:
    service.fail_next("borrowers.create_commercial", cut_after_commit=True)
    with pytest.raises(requests.ConnectionError):
        caller.post("/v1/users", business)
    assert [user["email"] for user in service.world.users()] == [business["email"]]
    assert service.calls[-1].status is None


def test_a_cut_before_the_operation_creates_no_borrower(
    service: Sandbox, caller: Caller, business: dict[str, Any]
) -> None:
    service.fail_next("borrowers.create_commercial", cut_before=True)
    with pytest.raises(requests.ConnectionError):
        caller.post("/v1/users", business)
    assert service.world.users() == []


def test_a_status_replaces_the_operation(service: Sandbox, caller: Caller, business: dict[str, Any]) -> None:
    service.fail_next(
        "borrowers.create_commercial", status=429, message="Slow down", headers={"Retry-After": "7"}
    )
    answer = caller.post("/v1/users", business)
    assert (answer.status_code, answer.json()) == (429, {"message": "Slow down"})
    assert answer.headers["Retry-After"] == "7"
    assert service.world.users() == []


def test_an_error_after_commit_still_creates_the_borrower(
    service: Sandbox, caller: Caller, business: dict[str, Any]
) -> None:
    service.fail_next("borrowers.create_commercial", status=500, commit=True)
    assert caller.post("/v1/users", business).status_code == 500
    assert len(service.world.users()) == 1


def test_a_fault_with_only_a_message_returns_200(service: Sandbox, caller: Caller) -> None:
    service.fail_next("messages.list", message="Not now")
    answer = caller.get(MESSAGES)
    assert (answer.status_code, answer.json()) == (200, {"message": "Not now"})


def test_a_truncated_answer_is_shorter_than_its_length(service: Sandbox, caller: Caller) -> None:
    service.fail_next("messages.list", truncate=True)
    with pytest.raises((requests.ConnectionError, requests.exceptions.ChunkedEncodingError)):
        caller.get(MESSAGES)


@pytest.mark.slow
def test_a_call_that_times_out_still_creates_the_borrower(
    service: Sandbox, caller: Caller, business: dict[str, Any]
) -> None:
    service.fail_next("borrowers.create_commercial", delay=30)
    send = caller.session.request
    caller.session.request = lambda *args, **options: send(*args, **options | {"timeout": 1})  # type: ignore[method-assign]
    with pytest.raises(requests.ReadTimeout):
        caller.post("/v1/users", business)
    assert len(service.world.users()) == 1


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        ({"html": True}, "<!doctype html>"),
        ({"body": b"\x00\x01"}, "\x00\x01"),
        ({"body": "{]"}, "{]"),
        ({"body": [1, None]}, "[1,null]"),
    ],
)
def test_a_fault_can_return_any_body(
    service: Sandbox, caller: Caller, fault: dict[str, Any], text: str
) -> None:
    service.fail_next("messages.list", **fault)
    assert caller.get(MESSAGES).text.startswith(text)


def test_changes_apply_to_objects_lists_and_pages(service: Sandbox, caller: Caller) -> None:
    user = service.world.borrower()["uuid"]
    loan = service.world.loan(user)["uuid"]
    service.world.repayment(loan)
    service.world.message("payment.succeeded", {})
    odd = {"status": 7, "surprise": ["x"]}
    service.fail_next("*", changes=odd, times=3)
    answers = [
        caller.get(f"/v1/users/{user}/loan/{loan}").json(),
        caller.get(f"/v1/users/{user}/loans/{loan}/payments").json()[0],
        caller.get(MESSAGES).json()["data"][0],
    ]
    assert [{name: answer[name] for name in odd} for answer in answers] == [odd] * 3


def read_answer(service: Sandbox) -> list[bytes]:
    """Send one request; return the pieces of its answer as they arrive."""
    host, port = service.url.removeprefix("http://").split(":")
    head = {**sign_request(service.url + MESSAGES), "Host": f"{host}:{port}", "Connection": "close"}
    lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(f"GET {MESSAGES} HTTP/1.1\r\n{lines}\r\n".encode())
        return list(iter(lambda: connection.recv(65536), b""))


def test_interim_answers_are_sent_before_the_answer(service: Sandbox) -> None:
    service.fail_next("messages.list", interim=(100, 103, 199))
    heads = [
        part.split()[1]
        for part in b"".join(read_answer(service)).split(b"\r\n\r\n")
        if part.startswith(b"HTTP/")
    ]
    assert heads == [b"100", b"103", b"199", b"200"]


def test_an_answer_can_close_its_connection(service: Sandbox, caller: Caller) -> None:
    service.fail_next("messages.list", headers={"Connection": "close"})
    connection = http.client.HTTPConnection(service.url.removeprefix("http://"), timeout=5)
    connection.connect()
    sock = connection.sock
    connection.request("GET", MESSAGES, headers=sign_request(service.url + MESSAGES))
    stream = sock.makefile("rb")
    assert b"\r\nConnection: close\r\n" in stream.read()
    connection.close()


def test_a_chunked_answer_has_trailers(service: Sandbox) -> None:
    plain = b"".join(read_answer(service)).partition(b"\r\n\r\n")[2]
    service.fail_next("messages.list", trailers={"X-Sum": "1"})
    head, _, body = b"".join(read_answer(service)).partition(b"\r\n\r\n")
    assert b"Transfer-Encoding: chunked" in head
    assert b"Content-Length" not in head
    assert body.startswith(b"%x;" % len(plain))
    assert plain in body
    assert body.endswith(b"\r\nX-Sum: 1\r\n\r\n")


@pytest.mark.slow
@pytest.mark.parametrize("part", ["interim", "head", "sizes", "body", "trailers"])
def test_any_part_of_an_answer_can_drip(service: Sandbox, caller: Caller, part: str) -> None:
    service.fail_next("messages.list", drip=0.001, drip_at=part, interim=(103,) if part == "interim" else ())
    assert len(read_answer(service)) > 5
    assert caller.get(MESSAGES).json() == {"pagination": {"offset": 0, "limit": 25, "total": 0}, "data": []}


def test_a_swapped_answer_is_that_of_the_previous_call(service: Sandbox, caller: Caller) -> None:
    user = service.world.borrower()["uuid"]
    paths = [f"/v1/users/{user}/loan/{service.world.loan(user)['uuid']}" for _ in range(2)]
    first = caller.get(paths[0]).json()
    service.fail_next("loans.get", swapped=True)
    assert caller.get(paths[1]).json() == first
    assert caller.get(paths[1]).json()["uuid"] in paths[1]


def test_a_swapped_write_is_still_performed(service: Sandbox, caller: Caller) -> None:
    one, two = (service.world.borrower()["uuid"] for _ in range(2))
    first = caller.put(f"/v1/users/{one}", {"email": "one@acme.example"}).json()
    service.fail_next("borrowers.update", swapped=True)
    assert caller.put(f"/v1/users/{two}", {"email": "two@acme.example"}).json() == first
    assert service.world.user(two)["email"] == "two@acme.example"


def test_a_loan_can_have_another_owner(service: Sandbox, caller: Caller) -> None:
    user, other = (service.world.borrower()["uuid"] for _ in range(2))
    loan = service.world.loan(user)["uuid"]
    service.fail_next("loans.get", changes={"user_uuid": other})
    answer = caller.get(f"/v1/users/{user}/loan/{loan}").json()
    assert (answer["uuid"], answer["user_uuid"]) == (loan, other)


def test_a_fault_applies_to_its_operation_for_its_number_of_calls(service: Sandbox, caller: Caller) -> None:
    service.fail_next("loans.get", status=502)
    service.fail_next("messages.list", status=503, times=2)
    service.fail_next("messages.list", status=504)
    assert [caller.get(MESSAGES).status_code for _ in range(4)] == [503, 503, 504, 200]


def test_a_fault_without_a_limit_lasts_until_healed(service: Sandbox, caller: Caller) -> None:
    service.fail_next("*", status=503, times=None)
    assert [caller.get(MESSAGES).status_code for _ in range(3)] == [503] * 3
    service.heal()
    assert caller.get(MESSAGES).status_code == 200


def test_an_unknown_fault_is_rejected(service: Sandbox) -> None:
    with pytest.raises(TypeError):
        service.fail_next("loans.get", cut_afer_commit=True)
    with pytest.raises(ValueError, match="no operation"):
        service.fail_next("loan.get", status=503)


@pytest.fixture
def document(service: Sandbox) -> str:
    line = service.world.line(service.world.borrower()["uuid"])["uuid"]
    return service.url + str(service.world.statement(line, "2026-05-04")["url"])


def test_a_document_can_redirect_to_an_internal_address(service: Sandbox, document: str) -> None:
    service.fail_next("documents.fetch", status=302, headers={"Location": "http://169.254.169.254/"})
    answer = requests.get(document, timeout=5, allow_redirects=False)
    assert (answer.status_code, answer.headers["Location"]) == (302, "http://169.254.169.254/")


def test_a_document_can_be_huge(service: Sandbox, document: str) -> None:
    service.fail_next("documents.fetch", size=200_000_000)
    with requests.get(document, timeout=5, stream=True) as answer:
        assert answer.headers["Content-Length"] == "200000000"
        assert next(answer.iter_content(9)) == b"%PDF-1.7\n"


def test_a_huge_document_ends_at_its_length(service: Sandbox, document: str) -> None:
    service.fail_next("documents.fetch", size=200_001)
    assert len(requests.get(document, timeout=5).content) == 200_001


def test_a_document_can_drip(service: Sandbox, document: str) -> None:
    service.fail_next("documents.fetch", drip=0.01)
    with requests.get(document, timeout=5, stream=True) as answer:
        assert len(answer.raw.read1()) < 1000 < int(answer.headers["Content-Length"])
