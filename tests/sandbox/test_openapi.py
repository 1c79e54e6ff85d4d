"""Compares the sandbox's answers with its OpenAPI description.

Schemathesis sends valid and invalid requests over real HTTP; half are for existing records.
"""

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
from servicing.sandbox.endpoints import OPERATIONS
from tests.conftest import SECRET

DESCRIBED = [name for name, operation in OPERATIONS.items() if operation.is_signed]
CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]
schema = schemathesis.openapi.from_path(Path(servicing.sandbox.__file__).with_name("openapi.yaml"))


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """A sandbox without signatures: bytes that are not text cannot be signed, but must be rejected too."""
    path = tmp_path_factory.mktemp("described") / "service.sqlite3"
    with Sandbox(path, secret=SECRET, auth="none") as sandbox:
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


def test_exactly_the_signed_operations_are_described() -> None:
    paths = schema.raw_schema["paths"].values()
    assert sorted(operation["operationId"] for path in paths for operation in path.values()) == sorted(
        DESCRIBED
    )


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
