"""Compares the sandbox's answers with its OpenAPI description.

Schemathesis sends valid and invalid requests over real HTTP; half are for existing records. One of the sandboxes
answers as usual, one in other forms, and one gives tokens.
"""

import base64
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks

import servicing.sandbox
from servicing.sandbox import Sandbox
from servicing.sandbox.endpoints import OPERATIONS, TOKEN
from tests.conftest import SECRET

DESCRIBED = [name for name, operation in OPERATIONS.items() if operation.is_signed]
CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.response_headers_conformance,
]
schema = schemathesis.openapi.from_path(Path(servicing.sandbox.__file__).with_name("openapi.yaml"))


OTHER_FORMS = {
    "wrap": "data",
    "wrap_lists": "payments",
    "wrap_errors": "problem",
    "errors": "ok",
    "message_total": "meta",
}


@pytest.fixture(scope="module", params=[{}, OTHER_FORMS], ids=["default", "other"])
def service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """A sandbox without signatures: bytes that are not text cannot be signed, but must be rejected too.

    Its secret is the sandbox's own, which encrypted the values of the examples.
    """
    path = tmp_path_factory.mktemp("described") / "service.sqlite3"
    with Sandbox(path, auth="none", **request.param) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def token_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """A sandbox that gives tokens."""
    path = tmp_path_factory.mktemp("tokens") / "service.sqlite3"
    with Sandbox(path, client_id="desk", secret=SECRET, auth="oauth2") as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def known_ids(service: Sandbox) -> dict[str, str]:
    """The IDs of a business with every kind of record."""
    world = service.world
    user = world.borrower()
    loan, line = world.loan(user["uuid"], paid=2), world.line(user["uuid"])
    world.draw(line["uuid"], "500.00")
    for account in (loan, line):
        world.repayment(account["uuid"], amount="310.00")
    return {
        "user_id": user["uuid"],
        "key_person_id": user["key_people"][0]["uuid"],
        "application_id": world.line_application(user["uuid"])["uuid"],
        "loan_id": loan["uuid"],
        "line_id": line["uuid"],
    }


def send_and_validate(service: Sandbox, case: Any, known_ids: dict[str, str] | None = None) -> Any:
    """Send a request and validate the answer against the description."""
    case.path_parameters.update({name: known_ids[name] for name in case.path_parameters if known_ids})
    return case.call_and_validate(base_url=service.url, checks=CHECKS)


def test_exactly_the_signed_operations_and_the_tokens_are_described() -> None:
    paths = schema.raw_schema["paths"].values()
    named = [operation["operationId"] for path in paths for operation in path.values()]
    assert sorted(named) == sorted([*DESCRIBED, TOKEN])
    assert {path: list(operations) for path, operations in schema.raw_schema["paths"].items()} == {
        re.sub("<(.*?)>", r"{\1}", operation.path): [operation.method.lower()]
        for operation in OPERATIONS.values()
        if operation.name in named
    }


@pytest.mark.parametrize("name", DESCRIBED)
def test_the_example_of_each_operation_succeeds(
    service: Sandbox, known_ids: dict[str, str], name: str
) -> None:
    operation = schema.find_operation_by_id(name)
    content = operation.definition.raw.get("requestBody", {}).get("content", {})
    body = {"body": content["application/json"]["example"]} if content else {}
    case = operation.Case(
        path_parameters=dict(known_ids), media_type="application/json" if body else None, **body
    )
    assert send_and_validate(service, case, known_ids).status_code == 200


@pytest.mark.slow
@pytest.mark.parametrize("mode", GenerationMode)
@pytest.mark.parametrize("name", DESCRIBED)
def test_every_answer_matches_the_description(
    service: Sandbox, known_ids: dict[str, str], name: str, mode: GenerationMode
) -> None:
    requests = schema.find_operation_by_id(name).as_strategy(generation_mode=mode)

    @settings(max_examples=12, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(case=requests, exists=st.booleans())
    def send_case(case: Any, exists: bool) -> None:
        assert send_and_validate(service, case, known_ids if exists else None).status_code < 500

    send_case()


def basic_auth() -> str:
    return f"Basic {base64.b64encode(f'desk:{SECRET}'.encode()).decode()}"


def token_case(**options: Any) -> Any:
    operation = schema.find_operation_by_id(TOKEN)
    (content,) = operation.definition.raw["requestBody"]["content"].items()
    return operation.Case(media_type=content[0], body=content[1]["example"], **options)


def test_the_example_of_a_token_request_succeeds(token_service: Sandbox) -> None:
    case = token_case(headers={"Authorization": basic_auth()})
    assert send_and_validate(token_service, case).status_code == 200


def test_the_token_endpoint_is_described_where_it_is_not_used(service: Sandbox) -> None:
    assert send_and_validate(service, token_case()).status_code == 404


def test_a_request_without_a_token_is_answered_as_described(token_service: Sandbox) -> None:
    for name in DESCRIBED:
        case = schema.find_operation_by_id(name).Case(
            path_parameters={"user_id": "u", "key_person_id": "k", "application_id": "a"}
            | {"loan_id": "l", "line_id": "n"}
        )
        assert send_and_validate(token_service, case).status_code == 401


@pytest.mark.slow
@pytest.mark.parametrize("mode", GenerationMode)
def test_every_answer_to_a_token_request_matches_the_description(
    token_service: Sandbox, mode: GenerationMode
) -> None:
    cases = schema.find_operation_by_id(TOKEN).as_strategy(generation_mode=mode)

    @settings(max_examples=12, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(case=cases, is_known=st.booleans())
    def send_case(case: Any, is_known: bool) -> None:
        case.headers["Authorization"] = basic_auth() if is_known else "Basic AAAA"
        assert send_and_validate(token_service, case).status_code in (200, 400, 401)

    send_case()
