"""Answers with a success status that are errors, empty or in an unknown envelope."""

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from servicing import Client, OutcomeUnknown, ProtocolError, Rejected, ServicingError
from tests.servicing.wire import Wire, response

STATEMENT = {"past_due_balance": 7502.71, "payment_due_date": None, "statements": []}
LOAN = {"uuid": "l-1", "amount": 12000, "status": "ACTIVE"}
REPAYMENT = {"uuid": "r-1", "amount": 310, "status": "FAILED"}
RECORD_READS: list[Callable[[Client], Any]] = [
    lambda client: client.credit_lines.statement("b-1", "c-1"),
    lambda client: client.loans.get("b-1", "l-1"),
    lambda client: client.applications.get_for_line("b-1", "l-1"),
]
LIST_READS: list[Callable[[Client], Any]] = [
    lambda client: client.repayments.of_loan("b-1", "l-1"),
    lambda client: client.repayments.of_line("b-1", "c-1"),
    lambda client: client.messages.list(),
    lambda client: list(client.messages.iterate()),
]


def read_error(wire: Wire, read: Callable[[Client], Any], body: Any) -> ServicingError:
    text = body if isinstance(body, str) else json.dumps(body)
    wire.answer(response(text))
    with Client(wire.url, auth="none") as client, pytest.raises(ServicingError) as caught:
        read(client)
    assert isinstance(caught.value, ProtocolError | Rejected)
    return caught.value


@pytest.fixture
def wire() -> Any:
    with Wire() as wire:
        yield wire


@pytest.mark.slow
@pytest.mark.parametrize("read", RECORD_READS)
@pytest.mark.parametrize(
    ("body", "reasons"),
    [
        ({}, ()),
        (None, ()),
        ([], ()),
        ([LOAN], ()),
        ("<p>Down</p>", ()),
        ('"Backend timeout"', ("Backend timeout",)),
        ({"error_code": "E1042", "error_message": "Backend timeout"}, ("E1042: Backend timeout",)),
        ({"uuid": "l-1", "status": "ERROR", "errorCode": "E1042"}, ("errorCode: E1042",)),
        ({"uuid": "l-1", "status": "ERROR", "message": "Try later"}, ("Try later",)),
        ({"code": 500, "description": "Backend timeout", "created_at": "2026-05-01"}, ("Backend timeout",)),
        ({"isSuccess": False, "result": None}, ()),
        ({"fault": {"faultstring": "Rate limit"}}, ("Rate limit",)),
        ({"data": STATEMENT | LOAN}, ()),
        ({"status": "success", "result": STATEMENT | LOAN}, ()),
        ({"unknown": 1, "field": "x"}, ()),
        (STATEMENT | LOAN | {"error": "Backend timeout"}, ("Backend timeout",)),
        (STATEMENT | LOAN | {"errors": ["Old figures", "Stale"]}, ("Old figures", "Stale")),
        (STATEMENT | LOAN | {"Success": "false"}, ()),
        (STATEMENT | LOAN | {"ok": 0}, ()),
        (STATEMENT | LOAN | {"isError": True}, ()),
        (STATEMENT | LOAN | {"has_errors": "true"}, ()),
        (STATEMENT | LOAN | {"err": "Backend timeout"}, ()),
        (STATEMENT | LOAN | {"exceptionMessage": "Backend timeout"}, ()),
        (STATEMENT | LOAN | {"status": 503}, ()),
        (STATEMENT | LOAN | {"statusCode": "504"}, ()),
        ({"uuid": "l-1"}, ()),
        ({"uuid": "l-1", "user_uuid": "b-1", "result": "TIMEOUT"}, ()),
    ],
)  # fmt: skip
def test_an_error_is_no_record(
    wire: Wire, read: Callable[[Client], Any], body: Any, reasons: tuple[str, ...]
) -> None:
    assert read_error(wire, read, body).reasons == reasons


@pytest.mark.parametrize(
    "body",
    [
        {"past_due_balance": None},
        {"statements": []},
        STATEMENT | {"error": None, "errors": [], "fault": {}, "success": True},
        STATEMENT | {"error_code": "0000", "error_message": "None", "message": "OK", "isSuccess": "true"},
        {"credit_limit": 5, "new_field": {"error": "kept as sent"}},
    ],
)
def test_part_of_a_statement_is_an_answer(wire: Wire, body: dict[str, Any]) -> None:
    wire.answer(response(json.dumps(body)))
    with Client(wire.url, auth="none") as client:
        assert client.credit_lines.statement("b-1", "c-1").raw.keys() == body.keys()


def test_an_envelope_named_like_a_field_is_no_statement(wire: Wire) -> None:
    read_error(wire, RECORD_READS[0], {"statements": STATEMENT})


@pytest.mark.slow
@pytest.mark.parametrize("read", LIST_READS)
@pytest.mark.parametrize(
    ("body", "reasons"),
    [
        ({}, ()),
        (None, ()),
        ('"closed"', ("closed",)),
        ({"data": None}, ()),
        ({"rows": [REPAYMENT]}, ()),
        ({"data": {"data": [REPAYMENT]}}, ()),
        ({"data": [], "error": "Backend timeout"}, ("Backend timeout",)),
        ({"data": [REPAYMENT], "errors": [{"message": "Partial"}]}, ("Partial",)),
        ({"items": [], "error_message": "Backend timeout"}, ("Backend timeout",)),
        ({"data": [], "success": False, "message": "Try later"}, ("Try later",)),
        ({"data": [], "status": "error"}, ()),
        ({"data": [], "statusCode": 500}, ()),
        ({"data": [], "httpStatus": "503"}, ()),
        ({"data": [], "hasErrors": True}, ()),
        ({"data": [], "errorMessages": ["Backend timeout"]}, ()),
        ({"data": [], "code": 500}, ()),
        ({"data": [], "status": "503 Service Unavailable"}, ()),
        ({"data": [], "status": "timeout"}, ()),
        ({"data": [], "result": "error"}, ()),
        ({"data": [], "meta": {"error": "Backend timeout"}}, ()),
        ({"data": [], "meta": {"success": False}}, ()),
    ],
)  # fmt: skip
def test_an_error_is_no_list(
    wire: Wire, read: Callable[[Client], Any], body: Any, reasons: tuple[str, ...]
) -> None:
    assert read_error(wire, read, body).reasons == reasons


@pytest.mark.parametrize("read", LIST_READS)
def test_a_list_of_nothing_but_an_error_is_no_list(wire: Wire, read: Callable[[Client], Any]) -> None:
    assert read_error(wire, read, [{"error": "Backend timeout"}]).reasons == ("Backend timeout",)


@pytest.mark.parametrize(
    ("element", "reasons"),
    [
        ({"error": "Backend timeout"}, ("Backend timeout",)),
        ({"uuid": "r-2", "error_code": "E1042"}, ("error_code: E1042",)),
        ({"uuid": "r-2", "status": "ERROR", "message": "Try later"}, ("Try later",)),
        ("Backend timeout", ("Backend timeout",)),
        ({}, ()),
        (None, ()),
        ({"amount": 5}, ()),
    ],
)
@pytest.mark.parametrize("wrap", [False, True])
def test_an_error_among_repayments_is_no_list(
    wire: Wire, element: Any, reasons: tuple[str, ...], wrap: bool
) -> None:
    rows = [REPAYMENT, element]
    error = read_error(wire, LIST_READS[0], {"data": rows} if wrap else rows)
    assert error.reasons == reasons


def test_a_repayment_may_name_its_error(wire: Wire) -> None:
    rows = [REPAYMENT | {"error": "R01", "error_code": "R01", "success": False}, {"uuid": "r-2"}]
    wire.answer(response(json.dumps({"data": rows, "error": "", "status": "success"})))
    with Client(wire.url, auth="none") as client:
        assert [row.uuid for row in client.repayments.of_loan("b-1", "l-1")] == ["r-1", "r-2"]


@pytest.mark.parametrize(
    "body",
    [
        {"uuid": "a-1", "error_code": "E1042"},
        {"uuid": "a-1", "message": "Accepted for processing"},
        {"uuid": "a-1", "product": "LOAN", "errors": ["No credit file"]},
        {"uuid": "a-1", "product": "LOAN", "success": False},
        {"data": {"uuid": "a-1", "product": "LOAN"}},
        {"message": "Accepted"},
        {},
    ],
)
def test_a_write_with_an_error_beside_its_record_is_unknown(wire: Wire, body: dict[str, Any]) -> None:
    wire.answer(response(json.dumps(body)))
    with Client(wire.url, auth="none") as client, pytest.raises(OutcomeUnknown):
        client.applications.submit("b-1", amount=Decimal(5))


def test_a_write_may_name_a_problem_beside_its_success(wire: Wire) -> None:
    body = {"uuid": "a-1", "product": "LOAN", "isSuccess": True, "error": "Receipt not mailed"}
    wire.answer(response(json.dumps(body)))
    with Client(wire.url, auth="none") as client:
        assert client.applications.submit("b-1", amount=Decimal(5)).uuid == "a-1"
