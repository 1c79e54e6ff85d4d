"""Turning answers into results or errors, and reading the reasons for a rejection."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servicing import (
    Busy,
    Conflict,
    Forbidden,
    NotFound,
    OutcomeUnknown,
    ProtocolError,
    Rejected,
    ServicingError,
    Unauthenticated,
    Unavailable,
)
from servicing.answers import Kind, interpret, recordable_body
from servicing.reasons import reasons_in

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
NO = b'{"message": "No."}'


def interpret_error(
    kind: Kind, status: int, body: bytes = NO, headers: dict[str, str] | None = None
) -> ServicingError:
    with pytest.raises(ServicingError) as caught:
        interpret(kind, status, headers or {}, body, now=NOW)
    return caught.value


@pytest.mark.parametrize(
    ("status", "read", "write"),
    [
        (301, ProtocolError, OutcomeUnknown),
        (400, Rejected, Rejected),
        (401, Unauthenticated, Unauthenticated),
        (403, Forbidden, Forbidden),
        (404, NotFound, NotFound),
        (409, Conflict, Conflict),
        (418, Rejected, Rejected),
        (422, Rejected, Rejected),
        (429, Unavailable, Busy),
        (500, Unavailable, OutcomeUnknown),
        (503, Unavailable, OutcomeUnknown),
        (199, ProtocolError, OutcomeUnknown),
        (408, Unavailable, OutcomeUnknown),
        (425, Unavailable, OutcomeUnknown),
        (451, Rejected, Rejected),
        (499, Unavailable, OutcomeUnknown),
    ],
)
def test_each_status_has_an_error_for_reads_and_writes(
    status: int, read: type[ServicingError], write: type[ServicingError]
) -> None:
    assert type(interpret_error("read", status)) is read
    assert type(interpret_error("write", status)) is write


@pytest.mark.parametrize("status", [200, 400, 404, 422])
def test_a_single_not_found_reason_means_not_found(status: int) -> None:
    assert isinstance(interpret_error("read", status, b'{"message": "Loan not found."}'), NotFound)


def test_not_found_inside_a_longer_reason_means_rejected() -> None:
    error = interpret_error("write", 422, b'{"message": "Street not found in that city"}')

    assert type(error) is Rejected


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("date", ["Fri, 01 May 2026 12:05:12 GMT", "Fri, 01 May 2026 11:54:48 GMT"])
def test_an_auth_error_mentions_the_clock_difference(status: int, date: str) -> None:
    error = interpret_error("read", status, headers={"Date": date})

    assert isinstance(error, Unauthenticated)
    assert "312 seconds apart" in error.message


@pytest.mark.parametrize("date", ["Fri, 01 May 2026 12:00:30 GMT", "Fri, 01 May 2026 11:59:30 -0000", "noon"])
def test_a_small_clock_difference_is_not_mentioned(date: str) -> None:
    assert type(interpret_error("read", 403, headers={"Date": date})) is Forbidden


@pytest.mark.parametrize("body", [b"", b"{", b"<p>fine</p>", b"\xff"])
def test_a_success_without_valid_json_is_an_error(body: bytes) -> None:
    assert isinstance(interpret_error("read", 200, body), ProtocolError)
    assert isinstance(interpret_error("write", 201, body), OutcomeUnknown)


@pytest.mark.parametrize(
    "value",
    [
        [],
        {},
        {"uuid": "a-1", "details": "as agreed"},
        {"message": None},
        {"data": [], "message": "nothing yet"},
        {"error_description": "late"},
    ],
)
def test_an_answer_that_is_not_only_an_error_is_returned(value: Any) -> None:
    assert interpret("read", 200, {}, json.dumps(value).encode(), now=NOW) == value


@pytest.mark.parametrize(
    "value",
    [
        {"error": "No."},
        {"error": "No.", "status": "error", "code": 17},
        {"error": True, "message": "No."},
        {"success": False, "errors": ["No."], "data": None},
        {"ok": "false", "errors": {"message": "No."}},
    ],
)
def test_a_success_status_with_only_an_error_is_rejected(value: Any) -> None:
    for kind in ("read", "write"):
        error = interpret_error(kind, 200, json.dumps(value).encode())
        assert (type(error), error.reasons) == (Rejected, ("No.",))


@pytest.mark.parametrize(
    "value",
    [
        {"message": "Accepted for processing"},
        {"success": True, "message": "Application created"},
        {"success": True, "error": "Receipt not mailed"},
        {"ok": "yes", "errors": ["Receipt not mailed"]},
        {"errors": [], "message": "Done"},
        {"errors": {"amount": []}, "detail": "Done"},
        {"error": "Receipt not mailed", "data": {"uuid": "a-1"}},
        json.loads('{"error":' * 400 + '"deep"' + "}" * 400),
    ],
)
def test_a_write_with_an_ambiguous_answer_succeeds(value: Any) -> None:
    assert interpret("write", 200, {}, json.dumps(value).encode(), now=NOW) == value


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7),
        ("Fri, 01 May 2026 12:00:30 GMT", 30),
        ("Fri, 01 May 2026 12:00:30 -0000", 30),
        ("Fri, 01 May 2026 11:00:00 GMT", 0),
        ("9" * 5000, 86_400),
        ("Fri, 31 Dec 9999 23:59:59 -1200", None),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 86_400),
        ("Fri, 01 May 2026 12:00:30 +99999999999999999999", None),
        ("soon", None),
        ("", None),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(header: str, seconds: float | None) -> None:
    error = interpret_error("read", 503, headers={"Retry-After": header, "Date": header})

    assert error.retry_after == seconds


@pytest.mark.parametrize(
    ("header", "advice"),
    [
        ("17", "in 17 seconds"),
        ("1", "in 1 second"),
        ("300", "in 300 seconds"),
        ("301", "in 6 minutes"),
        ("Fri, 01 May 2026 12:00:30 GMT", "in 30 seconds"),
        ("0", "in a moment"),
        ("soon", "in a moment"),
    ],
)
def test_a_busy_service_took_no_write(header: str, advice: str) -> None:
    error = interpret_error("write", 429, b'{"message": "Too Many"}', headers={"Retry-After": header})

    assert error.message == f"The service is busy. Nothing was sent. Try again {advice}."
    assert error.reasons == ("Too Many",)


@pytest.mark.parametrize(
    ("value", "reasons"),
    [
        ({"message": "amount is missing"}, ["amount is missing"]),
        ({"message": ["phone is invalid", "zip is invalid"]}, ["phone is invalid", "zip is invalid"]),
        ({"error": {"message": "No."}}, ["No."]),
        ({"message": "Invalid", "errors": {"phone": ["too short", "not US"]}},
         ["Invalid", "phone: too short", "phone: not US"]),
        ({"errors": [{"field": "zip", "message": "wrong"}, {"detail": "odd"}]}, ["zip: wrong", "odd"]),
        ({"phone": ["too short"], "address": {"zip": "wrong"}}, ["phone: too short", "address: zip: wrong"]),
        (["a", "b", "a", " ", ""], ["a", "b"]),
        ("Service is closed", ["Service is closed"]),
        ({"code": 17, "retry": True}, []),
        (None, []),
        (17, []),
        ({"detail": [{"loc": ["query", "limit"], "msg": "too large", "type": "int"},
                     {"loc": ["body", "key_people", 0, "phone"], "msg": "too short"}]},
         ["limit: too large", "key_people.0.phone: too short"]),
        ({"errors": [{"title": "Too short", "source": {"pointer": "/data/attributes/first_name"}},
                     {"title": "Bad", "detail": "Not a zip", "source": {"parameter": "zip"}}]},
         ["first_name: Too short", "zip: Not a zip"]),
        ({"type": "about:blank", "title": "Invalid parameters", "status": 400,
          "invalid-params": [{"name": "dob", "reason": "under 18"}, {"name": "ssn", "reason": "not 9 digits"}]},
         ["Invalid parameters", "dob: under 18", "ssn: not 9 digits"]),
        ({"title": "Bad request", "detail": "The amount is missing"}, ["The amount is missing"]),
        ({"violations": [{"propertyPath": "address.zip", "message": "wrong", "code": "c1"}]},
         ["address.zip: wrong"]),
        ({"error": "invalid_client", "error_description": "Unknown client"},
         ["invalid_client", "Unknown client"]),
        ({"fault": {"faultstring": "Quota exceeded", "faultcode": "soap:Server"}}, ["Quota exceeded"]),
        ({"Errors": [{"Code": "17", "Message": "No.", "Target": "Phone"}]}, ["Phone: No."]),
        ({"errors": [{"field": "email", "defaultMessage": "odd", "objectName": "user"}]}, ["email: odd"]),
        ({"errors": [{"property": "phone", "constraints": {"isPhone": "too short"}}]}, ["phone: too short"]),
        ({"errors": [{"location": "body", "param": "phone", "msg": "Invalid value"}]}, ["phone: Invalid value"]),
        ({"errors": [{"path": ["people", 1, "zip"], "message": "odd"}]}, ["people.1.zip: odd"]),
        ([{"instancePath": "/address/zip", "message": "odd"}], ["address.zip: odd"]),
        ({"timestamp": "2026-05-01", "status": 400, "error": "Bad Request", "message": "No.", "path": "/v1/users"},
         ["No.", "Bad Request"]),
        ({"error": {"code": "E7", "message": "Invalid", "details": [{"target": "zip", "message": "odd"}]}},
         ["Invalid", "zip: odd"]),
    ],
)  # fmt: skip
def test_reasons_are_read_from_common_shapes(value: Any, reasons: list[str]) -> None:
    assert reasons_in(value) == tuple(reasons)


def test_html_text_is_used_as_the_reason() -> None:
    page = b"<html><head><title>x</title><style>p {}</style></head><p>Down for\n maintenance &amp; repair</p>"

    assert interpret_error("read", 503, page).reasons == ("Down for maintenance & repair",)


def test_a_rejection_without_a_reason_has_a_default_message() -> None:
    assert (
        interpret_error("write", 400, b"").message
        == "The lending service rejected the request without a reason."
    )


def test_ein_and_ssn_in_reasons_are_masked() -> None:
    error = interpret_error(
        "write", 422, b'{"message": "SSN 123-45-6789, EIN 12-3456789 or 123456789 is taken"}'
    )

    assert error.message == "SSN [hidden], EIN [hidden] or [hidden] is taken"


def test_long_reasons_and_lists_are_truncated() -> None:
    error = interpret_error(
        "write", 422, json.dumps({"errors": ["x" * 10_000, *map(str, range(1_000))]}).encode()
    )

    assert len(error.reasons) == 50
    assert len(error.reasons[0]) == 500


def test_deeply_nested_reasons_are_ignored() -> None:
    assert reasons_in(json.loads('{"errors":' * 40 + '"deep"' + "}" * 40)) == ()


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: json.dumps({text: [text]}).encode()))
def test_any_error_body_gives_a_message(body: bytes) -> None:
    for kind in ("read", "write"):
        assert interpret_error(kind, 422, body).message


def test_recorded_bodies_are_masked_and_truncated() -> None:
    assert recordable_body(b'{"dob": "1980/01/01", "ok": 0.1}')["dob"] == "[hidden]"
    assert recordable_body(b"plain 123-45-6789") == "plain [hidden]"
    assert len(recordable_body(b"x" * 50_000)) == 20_000


@pytest.mark.parametrize("kind", ["read", "write"])
def test_one_byte_order_mark_is_dropped(kind: Kind) -> None:
    mark = "\ufeff".encode()

    assert interpret(kind, 200, {}, mark + b'{"uuid": "b-1"}', now=NOW) == {"uuid": "b-1"}
    assert interpret_error(kind, 422, mark + NO).reasons == ("No.",)
    assert interpret_error(kind, 422, mark + b"Closed").reasons == ("Closed",)
    assert recordable_body(mark + NO) == {"message": "No."}
    assert isinstance(interpret_error(kind, 200, mark * 2 + NO), ProtocolError | OutcomeUnknown)
