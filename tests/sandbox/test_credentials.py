"""The schemes other than signatures, over real HTTP."""

import base64
from typing import Any

import pytest
import requests
import time_machine

from servicing.errors import ConfigurationError
from servicing.sandbox import DEMO_CLIENT_ID, DEMO_SECRET, DEMO_TOKEN, Sandbox
from tests.sandbox.caller import Caller, sign_request
from tests.sandbox.conftest import OpenSandbox

MESSAGES = "/v1/webhooks/endpoints/messages"
FIELD_KEY = "3f2b8c1e-9d47-4a60-b1c5-7e8f90a2d364"
GRANT = {"grant_type": "client_credentials"}


def call(caller: Caller, **headers: str) -> requests.Response:
    """Send a request with these headers, whose names have underscores for hyphens."""
    return caller.get(MESSAGES, headers={name.replace("_", "-"): value for name, value in headers.items()})


def basic(client_id: str = DEMO_CLIENT_ID, secret: str = DEMO_SECRET) -> str:
    return f"Basic {base64.b64encode(f'{client_id}:{secret}'.encode()).decode()}"


def ask(service: Sandbox, authorization: str | None = None, **body: Any) -> requests.Response:
    """Ask for a token; ``data`` replaces the usual form."""
    return requests.post(
        service.token_url,
        **{"data": GRANT} | body,
        headers={"Authorization": basic() if authorization is None else authorization},
        timeout=5,
    )


def assert_challenged(answer: requests.Response, challenge: str) -> None:
    assert (answer.status_code, list(answer.json())) == (401, ["message"])
    assert answer.headers["WWW-Authenticate"].startswith(f"{challenge} realm=")


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_the_bearer_token_is_accepted(open_sandbox: OpenSandbox, scheme: str) -> None:
    _, caller = open_sandbox(auth="bearer", token="t-1")
    assert call(caller, Authorization=f"{scheme} t-1").status_code == 200


@pytest.mark.parametrize(
    "value", ["", "Bearer", "Bearer ", "Bearer t-2", "Bearer t-", "Bearer t-1 t-1", "Basic t-1", "t-1"]
)
def test_another_bearer_token_is_rejected(open_sandbox: OpenSandbox, value: str) -> None:
    _, caller = open_sandbox(auth="bearer", token="t-1")
    assert_challenged(call(caller, Authorization=value), "Bearer")
    assert_challenged(call(caller, X_Api_Key="t-1"), "Bearer")


@pytest.mark.parametrize("names", [(), ("Lender_Key",)])
def test_the_token_is_read_in_its_header(open_sandbox: OpenSandbox, names: tuple[str, ...]) -> None:
    service, caller = open_sandbox(auth="header", auth_headers=names)
    name = names[0] if names else "X-Api-Key"
    assert service.token == DEMO_TOKEN
    assert caller.get(MESSAGES, headers={name: DEMO_TOKEN}).status_code == 200
    for headers in (
        {name: "other"},
        {name: ""},
        {"X-Other": DEMO_TOKEN},
        {"Authorization": f"Bearer {DEMO_TOKEN}"},
    ):
        assert_challenged(caller.get(MESSAGES, headers=headers), "ApiKey")


@pytest.mark.parametrize(
    ("client_id", "secret", "encoded"),
    [
        ("Aladdin", "open sesame", "QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),
        ("test", "123£", "dGVzdDoxMjPCow=="),
    ],
    ids=["RFC 7617, section 2", "RFC 7617, section 2.1"],
)
def test_basic_credentials_are_accepted(
    open_sandbox: OpenSandbox, client_id: str, secret: str, encoded: str
) -> None:
    _, caller = open_sandbox(auth="basic", client_id=client_id, secret=secret, field_key=FIELD_KEY)
    assert call(caller, Authorization=f"Basic {encoded}").status_code == 200


@pytest.mark.parametrize(
    "value",
    [
        "",
        basic(secret="other"),
        basic(client_id="other"),
        basic(secret=f"{DEMO_SECRET} "),
        basic().replace("Basic", "Bearer"),
        basic()[:-4],
        "Basic /w==",
        "Basic é",
    ],
)
def test_other_basic_credentials_are_rejected(open_sandbox: OpenSandbox, value: str) -> None:
    _, caller = open_sandbox(auth="basic")
    answer = caller.get(MESSAGES, headers={"Authorization": value.encode("latin-1")})
    assert_challenged(answer, "Basic")


@pytest.mark.parametrize("auth", ["bearer", "header", "basic", "oauth2"])
def test_a_write_without_credentials_is_not_performed(
    open_sandbox: OpenSandbox, business: dict[str, Any], auth: str
) -> None:
    service, caller = open_sandbox(auth=auth)
    assert caller.post("/v1/users", business).status_code == 401
    assert service.world.users() == []


@pytest.mark.parametrize("auth", ["none", "bearer", "header", "basic", "oauth2"])
def test_a_document_needs_no_credentials(open_sandbox: OpenSandbox, auth: str) -> None:
    service, _ = open_sandbox(auth=auth)
    line = service.world.line(service.world.borrower()["uuid"])["uuid"]
    url = service.url + service.world.statement(line, "2026-05-04")["url"]
    assert requests.get(url, timeout=5).content.startswith(b"%PDF-")


@pytest.mark.parametrize(("unit", "accepted"), [("both", {10, 13}), ("ms", {13}), ("s", {10})])
def test_the_epochs_unit_can_be_required(open_sandbox: OpenSandbox, unit: str, accepted: set[int]) -> None:
    service, caller = open_sandbox(epoch_unit=unit)
    milliseconds = sign_request(service.url)["Epoch"]
    statuses = {
        len(epoch): caller.get(MESSAGES, epoch=epoch).status_code
        for epoch in (milliseconds, milliseconds[:10])
    }
    assert statuses == {digits: 200 if digits in accepted else 403 for digits in (10, 13)}


# Tokens for client credentials (RFC 6749, section 4.4)


@pytest.fixture
def lender(open_sandbox: OpenSandbox) -> tuple[Sandbox, Caller]:
    return open_sandbox(auth="oauth2", token_seconds=600)


def test_a_token_opens_the_service(lender: tuple[Sandbox, Caller]) -> None:
    service, caller = lender
    answer = ask(service)
    assert (answer.status_code, answer.headers["Cache-Control"]) == (200, "no-store")
    token = answer.json()["access_token"]
    assert answer.json() == {"access_token": token, "token_type": "Bearer", "expires_in": 600}
    assert call(caller, Authorization=f"Bearer {token}").status_code == 200
    assert ask(service).json()["access_token"] != token
    assert call(caller, Authorization=f"Bearer {token}").status_code == 200


def test_only_a_given_token_opens_the_service(lender: tuple[Sandbox, Caller]) -> None:
    service, caller = lender
    token = ask(service).json()["access_token"]
    for value in ("", "Bearer", f"Bearer {token}0", f"Basic {token}", f"Bearer {DEMO_TOKEN}", basic()):
        assert_challenged(call(caller, Authorization=value), "Bearer")


def test_a_token_expires(lender: tuple[Sandbox, Caller]) -> None:
    service, caller = lender
    with time_machine.travel("2026-05-04T12:00:00Z", tick=False) as clock:
        authorization = f"Bearer {ask(service).json()['access_token']}"
        clock.shift(599)
        assert call(caller, Authorization=authorization).status_code == 200
        clock.shift(1)
        assert_challenged(call(caller, Authorization=authorization), "Bearer")


def test_all_tokens_can_be_ended(lender: tuple[Sandbox, Caller]) -> None:
    service, caller = lender
    tokens = [f"Bearer {ask(service).json()['access_token']}" for _ in range(2)]
    service.expire_tokens()
    assert [call(caller, Authorization=token).status_code for token in tokens] == [401, 401]
    token = f"Bearer {ask(service).json()['access_token']}"
    assert call(caller, Authorization=token).status_code == 200


def assert_refused(answer: requests.Response, status: int, code: str) -> None:
    assert (answer.status_code, answer.json()["error"]) == (status, code)
    assert sorted(answer.json()) == ["error", "error_description"]
    assert answer.headers["Cache-Control"] == "no-store"
    assert ("WWW-Authenticate" in answer.headers) == (status == 401)


@pytest.mark.parametrize(
    "authorization", ["", basic(secret="other"), basic(client_id="other"), f"Bearer {DEMO_TOKEN}", "Basic %"]
)
def test_another_client_gets_no_token(lender: tuple[Sandbox, Caller], authorization: str) -> None:
    assert_refused(ask(lender[0], authorization), 401, "invalid_client")


def test_the_client_and_its_secret_are_form_encoded(open_sandbox: OpenSandbox) -> None:
    service, _ = open_sandbox(auth="oauth2", client_id="a:b c", secret="100%+é", field_key=FIELD_KEY)
    assert ask(service, basic("a%3Ab+c", "100%25%2B%C3%A9")).status_code == 200
    assert_refused(ask(service, basic("a%3Ab+c", "100%+é")), 401, "invalid_client")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"data": {"grant_type": "password"}}, "unsupported_grant_type"),
        ({"data": {"grant_type": ""}}, "invalid_request"),
        ({"data": {"scope": "loans"}}, "invalid_request"),
        ({"data": [*GRANT.items(), *GRANT.items()]}, "invalid_request"),
        ({"data": "grant_type"}, "invalid_request"),
        ({"data": b""}, "invalid_request"),
        ({"data": None, "json": GRANT}, "invalid_request"),
        ({"data": None, "params": GRANT}, "invalid_request"),
    ],
)
def test_a_wrong_token_request_is_refused(
    lender: tuple[Sandbox, Caller], body: dict[str, Any], code: str
) -> None:
    assert_refused(ask(lender[0], **body), 400, code)


def test_the_scope_must_be_asked_for(open_sandbox: OpenSandbox) -> None:
    service, _ = open_sandbox(auth="oauth2", scope="loans users")
    assert ask(service, data=GRANT | {"scope": "users loans"}).status_code == 200
    for scope in ("", "loans", "loans users admin"):
        assert_refused(ask(service, data=GRANT | {"scope": scope}), 400, "invalid_scope")


def test_a_scope_is_accepted_where_none_is_needed(lender: tuple[Sandbox, Caller]) -> None:
    assert ask(lender[0], data=GRANT | {"scope": "loans"}).status_code == 200


def test_the_token_endpoint_has_calls_and_faults(lender: tuple[Sandbox, Caller]) -> None:
    service, _ = lender
    service.fail_next("oauth2.token", status=401, message="Who are you?")
    service.fail_next("oauth2.token", status=503)
    service.fail_next("oauth2.token", changes={"expires_in": 1})
    assert ask(service).json() == {"error": "invalid_client", "error_description": "Who are you?"}
    assert ask(service).json() == {"error": "server_error", "error_description": "Simulated error 503"}
    assert ask(service).json()["expires_in"] == 1
    assert [(call.operation, call.path, call.status) for call in service.calls] == [
        ("oauth2.token", "/oauth/token", status) for status in (401, 503, 200)
    ]


def test_the_forms_of_answers_and_errors_leave_the_token_endpoint_alone(open_sandbox: OpenSandbox) -> None:
    service, caller = open_sandbox(auth="oauth2", wrap="data", wrap_errors="data", errors="list")
    assert ask(service).json()["token_type"] == "Bearer"
    assert_refused(ask(service, data={"grant_type": "password"}), 400, "unsupported_grant_type")
    service.fail_next("oauth2.token", status=400)
    assert list(ask(service).json()) == ["error", "error_description"]
    assert list(call(caller).json()) == ["data"]


@pytest.mark.parametrize("auth", ["hmac", "none", "bearer", "header", "basic"])
def test_there_is_a_token_endpoint_only_for_tokens(open_sandbox: OpenSandbox, auth: str) -> None:
    service, _ = open_sandbox(auth=auth)
    assert ask(service).status_code == 404


def test_no_secret_is_logged(open_sandbox: OpenSandbox, capfd: pytest.CaptureFixture[str]) -> None:
    service, caller = open_sandbox(auth="oauth2", log=True)
    token = ask(service).json()["access_token"]
    call(caller, Authorization=f"Bearer {token}")
    ask(service, data={"grant_type": "password", "password": "hunter2"})
    logged = capfd.readouterr().err
    assert logged.count("\n") == 3
    assert [secret for secret in (token, DEMO_SECRET, basic(), "hunter2") if secret in logged] == []


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"auth": "api-key"},
            "auth must be one of hmac, none, bearer, header, basic, oauth2, not 'api-key'.",
        ),
        ({"auth": "bearer", "token": ""}, "The token is missing."),
        ({"auth": "header", "token": ""}, "The token is missing."),
        ({"auth": "header", "auth_headers": ("a", "b")}, "auth_headers must name one header, for the token."),
        ({"auth_headers": ("a",)}, "auth_headers must name four headers"),
        ({"epoch_unit": "us"}, "epoch_unit must be one of both, ms, s, not 'us'."),
        ({"auth": "basic", "client_id": "a:b"}, "A client ID with a colon can't be sent"),
        ({"auth": "oauth2", "token_seconds": 0}, "token_seconds must be 1 or more."),
    ],
)
def test_unusable_credentials_are_refused_at_the_start(
    open_sandbox: OpenSandbox, options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        open_sandbox(**options)
    assert str(caught.value).startswith(sentence)
