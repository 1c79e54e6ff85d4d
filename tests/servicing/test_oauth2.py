"""OAuth 2 client credentials, against a token service and a lending service with scripted answers."""

import base64
import json
import logging
import threading
import time
from collections.abc import Iterator
from decimal import Decimal
from traceback import TracebackException
from typing import Any
from urllib.parse import parse_qs

import pytest

from servicing import Client, ConfigurationError, NotSent, Unauthenticated, Unavailable
from tests.servicing.wire import Reply, Wire, cut, response

pytestmark = pytest.mark.core

SECRET = "3f2b8c1e-9d47-4a60-b1c5-7e8f90a2d364"
LOAN_ID = "11111111-2222-4333-8444-555555555555"
LOAN = json.dumps({"uuid": LOAN_ID, "amount": 10, "status": "ACTIVE"})
APPLICATION = json.dumps({"uuid": LOAN_ID, "amount": 10, "product": "LOAN", "offers": []})
MESSAGES = '{"pagination": {"offset": 0, "limit": 1, "total": 0}, "data": []}'


def answer(status: int, body: str) -> bytes:
    return response(body, status)


def token_answer(token: str = "t0ken", **more: Any) -> bytes:
    fields = {"access_token": token, "token_type": "Bearer", "expires_in": 3600} | more
    return answer(200, json.dumps({name: value for name, value in fields.items() if value is not ...}))


@pytest.fixture
def tokens() -> Iterator[Wire]:
    """The token service."""
    with Wire() as server:
        server.answer(token_answer())
        yield server


@pytest.fixture
def lending(wire: Wire, tokens: Wire) -> Iterator[Client]:
    wire.answer(answer(200, LOAN))
    with oauth2_client(wire, tokens) as client:
        yield client


def oauth2_client(wire: Wire, tokens: Wire, **options: Any) -> Client:
    given = {"scope": "read write", "time_limit": 2.0, "max_tries": 1} | options
    return Client(
        wire.url, auth="oauth2", client_id="desk", secret=SECRET, token_url=f"{tokens.url}/token", **given
    )


def sent_tokens(wire: Wire) -> list[str]:
    heads = [request.decode().partition("\r\n\r\n")[0] for request in wire.requests]
    return [
        line.removeprefix("Authorization: Bearer ")
        for head in heads
        for line in head.split("\r\n")
        if line.startswith("Authorization: ")
    ]


def read_loan(client: Client) -> None:
    client.loans.get("b1", LOAN_ID)


def submit(client: Client) -> None:
    client.applications.submit("b1", amount=Decimal(10))


def test_the_token_is_asked_for_once_as_the_standard_says(lending: Client, wire: Wire, tokens: Wire) -> None:
    for _ in range(3):
        read_loan(lending)
    (request,) = tokens.requests
    head, _, body = request.decode().partition("\r\n\r\n")
    credentials = base64.b64encode(f"desk:{SECRET}".encode()).decode()
    assert head.startswith("POST /token HTTP/1.1\r\n")
    assert f"Authorization: Basic {credentials}" in head
    assert "Content-Type: application/x-www-form-urlencoded" in head
    assert parse_qs(body) == {"grant_type": ["client_credentials"], "scope": ["read write"]}
    assert sent_tokens(wire) == ["t0ken"] * 3


def test_threads_share_the_token(lending: Client, wire: Wire, tokens: Wire) -> None:
    tokens.answer(lambda handler: (time.sleep(0.2), handler.wfile.write(token_answer()))[0])
    threads = [threading.Thread(target=read_loan, args=(lending,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(tokens.requests) == 1
    assert sent_tokens(wire) == ["t0ken"] * 8


@pytest.mark.parametrize(
    ("expires_in", "is_renewed"),
    [
        (5, False),
        ("5", False),
        (1, True),
        ("1", True),
        (0, False),
        (None, False),
        (..., False),
        (3600.5, False),
        ("3600.5", False),
        ("an hour", False),
        ("", False),
        (-5, False),
        (float("inf"), False),
        (float("nan"), False),
        ([3600], False),
    ],
)
def test_a_token_is_renewed_before_it_ends(
    lending: Client, wire: Wire, tokens: Wire, expires_in: Any, is_renewed: bool
) -> None:
    tokens.answer(token_answer("first", expires_in=expires_in), token_answer("second"))
    read_loan(lending)
    time.sleep(0.6)  # More than half of one second.
    read_loan(lending)
    assert sent_tokens(wire) == ["first", "second" if is_renewed else "first"]


def test_a_read_with_an_ended_token_is_repeated_once(lending: Client, wire: Wire, tokens: Wire) -> None:
    tokens.answer(token_answer("first"), token_answer("second"))
    wire.answer(answer(401, "{}"), answer(200, LOAN))
    read_loan(lending)
    assert sent_tokens(wire) == ["first", "second"]


def test_a_read_that_stays_unauthenticated_ends_after_one_more_try(
    lending: Client, wire: Wire, tokens: Wire
) -> None:
    wire.answer(answer(401, '{"error": "invalid_token", "error_description": "It ended"}'))
    with pytest.raises(Unauthenticated, match="It ended"):
        read_loan(lending)
    assert (len(wire.requests), len(tokens.requests)) == (2, 2)


def test_a_change_with_an_ended_token_is_rejected_and_never_repeated(
    lending: Client, wire: Wire, tokens: Wire
) -> None:
    tokens.answer(token_answer("first"), token_answer("second"))
    wire.answer(answer(401, '{"message": "The token ended"}'), answer(200, APPLICATION))
    with pytest.raises(Unauthenticated, match="The token ended"):
        submit(lending)
    assert len(wire.requests) == 1
    submit(lending)
    assert sent_tokens(wire) == ["first", "second"]


REFUSALS = [
    answer(401, '{"error": "invalid_client", "error_description": "Wrong secret"}'),
    answer(400, '{"error": "invalid_client", "error_description": "Wrong secret"}'),
    answer(200, '{"error": "invalid_client", "error_description": "Wrong secret"}'),
]


@pytest.mark.parametrize("refusal", REFUSALS)
def test_refused_credentials_are_one_clear_error(
    lending: Client, wire: Wire, tokens: Wire, refusal: bytes
) -> None:
    tokens.answer(refusal)
    sentence = r"The token service rejected these credentials: invalid_client; Wrong secret\."
    with pytest.raises(Unauthenticated, match=sentence):
        read_loan(lending)
    with pytest.raises(NotSent, match=rf"Nothing was sent\. {sentence}"):
        submit(lending)
    assert wire.requests == []


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (answer(200, "<html>Sign in</html>"), "has no token"),
        (answer(200, "[]"), "has no token"),
        (answer(200, '"t0ken"'), "has no token"),
        (answer(200, '{"access_token": null}'), "has no token"),
        (answer(200, '{"token": "s3cret-token"}'), "has no token"),
        pytest.param(answer(200, "[" * 20_000), "has no token", id="deep"),
        (answer(503, "<html>Later</html>"), "returned status 503"),
        (answer(302, ""), "returned status 302"),
        (cut, "the connection was cut"),
    ],
)
def test_a_token_service_that_fails_is_unavailable(
    lending: Client, wire: Wire, tokens: Wire, given: Reply, sentence: str
) -> None:
    tokens.answer(given)
    with pytest.raises(Unavailable, match=sentence) as failure:
        read_loan(lending)
    assert "s3cret" not in str(failure.value)
    with pytest.raises(NotSent, match=sentence):
        submit(lending)
    assert wire.requests == []


@pytest.mark.parametrize(
    "more",
    [
        {"token_type": "mac"},
        {"token_type": ["Bearer"]},
        {"access_token": "two\nlines"},
        {"access_token": ""},
    ],
)
def test_a_token_that_cannot_be_used_is_refused(lending: Client, tokens: Wire, more: Any) -> None:
    tokens.answer(token_answer(**more))
    with pytest.raises(Unauthenticated, match="The token service"):
        read_loan(lending)


@pytest.mark.parametrize(
    "given",
    [
        token_answer(error=None),
        token_answer(error=""),
        token_answer(scope=["read", "write"]),
        answer(200, "\ufeff" + json.dumps({"access_token": "t0ken", "token_type": "Bearer"})),
        answer(200, "access_token=t0ken&token_type=bearer&expires_in=60"),
    ],
)
def test_an_odd_answer_with_a_token_is_read(lending: Client, wire: Wire, tokens: Wire, given: bytes) -> None:
    tokens.answer(given)
    read_loan(lending)
    assert sent_tokens(wire) == ["t0ken"]


def test_a_refusal_quotes_no_token(lending: Client, tokens: Wire) -> None:
    tokens.answer(answer(400, '{"access_token": "s3cret-token", "token_type": "Bearer"}'))
    with pytest.raises(Unauthenticated, match=r"rejected these credentials: status 400\.") as failure:
        read_loan(lending)
    traceback = TracebackException.from_exception(failure.value, capture_locals=True)
    assert "s3cret-token" not in "".join(traceback.format())


def test_a_change_does_not_wait_for_the_token_of_another_call(wire: Wire, tokens: Wire) -> None:
    is_asked = threading.Event()

    def answer_late(handler: Any) -> None:
        is_asked.set()
        time.sleep(1.5)
        handler.wfile.write(token_answer("second"))

    def refuse_while_another_call_renews(handler: Any) -> None:
        client._transport._oauth2._renew_at = 0.0  # type: ignore[union-attr]
        reader.start()
        is_asked.wait(5)
        handler.wfile.write(answer(401, '{"message": "The token ended"}'))

    tokens.answer(token_answer("first"), answer_late)
    wire.answer(refuse_while_another_call_renews, answer(200, LOAN))
    with oauth2_client(wire, tokens, time_limit=5.0) as client:
        reader = threading.Thread(target=read_loan, args=(client,))
        started = time.monotonic()
        with pytest.raises(Unauthenticated, match="The token ended"):
            submit(client)
        assert time.monotonic() - started < 1.2
        reader.join()
    assert sent_tokens(wire) == ["first", "second"]


def test_a_slow_token_service_takes_no_longer_than_the_call_may(wire: Wire, tokens: Wire) -> None:
    tokens.answer(lambda handler: time.sleep(3))
    with oauth2_client(wire, tokens, time_limit=0.5) as client:
        started = time.monotonic()
        with pytest.raises(Unavailable, match="The token service didn’t respond: it took too long"):
            read_loan(client)
        assert time.monotonic() - started < 2


def test_a_failing_token_service_is_tried_again_for_a_read(wire: Wire, tokens: Wire) -> None:
    wire.answer(answer(200, LOAN))
    tokens.answer(answer(503, ""), token_answer())
    pauses: list[float] = []
    with oauth2_client(wire, tokens, max_tries=3, sleep=pauses.append) as client:
        read_loan(client)
    assert len(pauses) == 1


def test_a_token_never_shows(lending: Client, tokens: Wire, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    tokens.answer(token_answer("s3cret-token"))
    read_loan(lending)
    shown = caplog.text + repr(vars(lending)) + repr(vars(lending._transport._oauth2))
    assert "s3cret-token" not in shown
    assert SECRET not in shown


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"auth": "hmac", "token_url": "https://lender.example"}, "belong to auth=oauth2"),
        ({"auth": "oauth2"}, "token_url must look like"),
        ({"auth": "oauth2", "token_url": "lender.example/token"}, "token_url must look like"),
        (
            {"auth": "oauth2", "token_url": "https://lender.example", "secret": ""},
            "needs the client id and the secret",
        ),
    ],
)
def test_unusable_arguments_are_refused(options: Any, sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=sentence):
        Client("https://lender.example", **{"client_id": "desk", "secret": SECRET} | options)
