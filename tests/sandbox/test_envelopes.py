"""The forms of answers, totals and errors that a service can have, over real HTTP."""

from typing import Any

import pytest
import requests

from servicing.sandbox import Sandbox
from tests.sandbox.caller import Caller
from tests.sandbox.conftest import OpenSandbox

MESSAGES = "/v1/webhooks/endpoints/messages"
OBJECTS = [
    "borrowers.create_commercial",
    "borrowers.update",
    "borrowers.update_key_person",
    "applications.submit",
    "applications.get_for_line",
    "loans.get",
    "credit_lines.statement",
]
LISTS = ["repayments.of_line", "repayments.of_loan"]


def call_all(service: Sandbox, caller: Caller, business: dict[str, Any]) -> dict[str, Any]:
    """Call every operation once; return the answers by operation."""
    world = service.world
    owner = world.borrower()
    user = owner["uuid"]
    loan, line = world.loan(user)["uuid"], world.line(user)["uuid"]
    for account in (loan, line):
        world.repayment(account)
    world.message("payment.succeeded", {})
    application = world.line_application(user)["uuid"]
    path = f"/v1/users/{user}"
    return {
        "borrowers.create_commercial": caller.post("/v1/users", business).json(),
        "borrowers.update": caller.put(path, {}).json(),
        "borrowers.update_key_person": caller.put(
            f"{path}/key_people/{owner['key_people'][0]['uuid']}", {}
        ).json(),
        "applications.submit": caller.post(f"{path}/loans/applications", {"amount": 100}).json(),
        "applications.get_for_line": caller.get(f"{path}/loc/applications/{application}").json(),
        "loans.get": caller.get(f"{path}/loan/{loan}").json(),
        "credit_lines.statement": caller.get(f"{path}/loc/{line}/statements").json(),
        "repayments.of_line": caller.get(f"{path}/loc/{line}/payments").json(),
        "repayments.of_loan": caller.get(f"{path}/loans/{loan}/payments").json(),
        "messages.list": caller.get(MESSAGES).json(),
    }


def test_objects_are_wrapped(open_sandbox: OpenSandbox, business: dict[str, Any]) -> None:
    answers = call_all(*open_sandbox(wrap="data"), business)
    assert {name: "".join(answers[name]) for name in OBJECTS} == dict.fromkeys(OBJECTS, "data")
    assert answers["loans.get"]["data"]["status"] == "ACTIVE"
    assert {name: type(answers[name]) for name in LISTS} == dict.fromkeys(LISTS, list)
    assert list(answers["messages.list"]) == ["pagination", "data"]


def test_lists_of_repayments_are_wrapped(open_sandbox: OpenSandbox, business: dict[str, Any]) -> None:
    answers = call_all(*open_sandbox(wrap_lists="payments"), business)
    assert {name: "".join(answers[name]) for name in LISTS} == dict.fromkeys(LISTS, "payments")
    assert {name: len(answers[name]["payments"]) for name in LISTS} == dict.fromkeys(LISTS, 1)
    assert list(answers["messages.list"]) == ["pagination", "data"]
    assert answers["loans.get"]["status"] == "ACTIVE"


def error_answers(service: Sandbox, caller: Caller) -> list[requests.Response]:
    """An invalid body, a missing record, an unknown path, a wrong signature and a simulated failure."""
    service.fail_next("messages.list", status=503, message="Not now")
    user = service.world.borrower()["uuid"]
    return [
        caller.post("/v1/users", []),
        caller.get(f"/v1/users/{user}/loan/l-1"),
        caller.get("/v1/nothing"),
        caller.get(f"/v1/users/{user}/loan/l-1", epoch="1"),
        caller.get(MESSAGES),
    ]


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"wrap": "data"}, {"message"}),
        ({"wrap": "data", "wrap_errors": "problem"}, {"problem"}),
        ({"wrap_errors": "data"}, {"data"}),
    ],
)
def test_errors_are_wrapped_only_on_request(
    open_sandbox: OpenSandbox, options: dict[str, str], names: set[str]
) -> None:
    service, caller = open_sandbox(**options)
    answers = error_answers(service, caller)
    assert [answer.status_code for answer in answers] == [400, 404, 404, 403, 503]
    assert {name for answer in answers for name in answer.json()} == names
    (member,) = answers[0].json().values()
    assert member == ("must be an object" if names == {"message"} else {"message": "must be an object"})


@pytest.mark.parametrize(
    ("form", "invalid", "failed"),
    [
        ("message", {"message": "must be an object"}, {"message": "Not now"}),
        (
            "oauth",
            {"error": "invalid_request", "error_description": "must be an object"},
            {"error": "server_error", "error_description": "Not now"},
        ),
        ("list", {"errors": [{"detail": "must be an object"}]}, {"errors": [{"detail": "Not now"}]}),
        ("ok", {"error": "must be an object"}, {"error": "Not now"}),
    ],
)
def test_errors_have_the_chosen_form(
    open_sandbox: OpenSandbox, form: str, invalid: dict[str, Any], failed: dict[str, Any]
) -> None:
    service, caller = open_sandbox(errors=form)
    answers = error_answers(service, caller)
    assert answers[0].json() == invalid
    assert answers[-1].json() == failed
    assert {tuple(answer.json()) for answer in answers} == {tuple(invalid)}
    status = 200 if form == "ok" else 400
    assert [answer.status_code for answer in answers] == [status, 404, 404, 403, 503]


def test_a_failed_check_with_the_status_200_changes_nothing(
    open_sandbox: OpenSandbox, business: dict[str, Any]
) -> None:
    service, caller = open_sandbox(errors="ok", wrap="data")
    answer = caller.post("/v1/users", business | {"phone": "1"})
    assert (answer.status_code, list(answer.json())) == (200, ["error"])
    assert service.world.users() == []


def test_an_oauth_error_names_a_client_that_is_not_known(open_sandbox: OpenSandbox) -> None:
    _, caller = open_sandbox(errors="oauth", auth="bearer")
    answer = caller.get(MESSAGES)
    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")


@pytest.mark.parametrize(
    ("place", "around"),
    [
        ("pagination", {"pagination": {"offset": 0, "limit": 2, "total": 3}}),
        ("beside", {"total": 3}),
        ("meta", {"meta": {"total": 3}}),
    ],
)
def test_the_total_is_in_the_chosen_place(
    open_sandbox: OpenSandbox, place: str, around: dict[str, Any]
) -> None:
    service, caller = open_sandbox(message_total=place, wrap="wrapped", wrap_lists="wrapped")
    for _ in range(3):
        service.world.message("a", {})
    page = caller.get(f"{MESSAGES}?limit=2").json()
    assert (len(page.pop("data")), page) == (2, around)


def test_a_message_list_can_be_bare(open_sandbox: OpenSandbox) -> None:
    service, caller = open_sandbox(message_total="bare", wrap_lists="wrapped")
    created = [service.world.message("a", {})["uuid"] for _ in range(3)][::-1]
    pages = [caller.get(f"{MESSAGES}?limit=2&offset={offset}").json() for offset in range(3)]
    assert [[message["uuid"] for message in page] for page in pages] == [created[:2], created[2:], []]


@pytest.mark.parametrize("place", ["pagination", "beside", "meta", "bare"])
@pytest.mark.parametrize("name", ["data", "result"])
def test_a_fault_changes_what_is_in_an_envelope(
    open_sandbox: OpenSandbox, business: dict[str, Any], name: str, place: str
) -> None:
    service, caller = open_sandbox(wrap=name, wrap_lists=name, message_total=place)
    service.fail_next("*", changes={"surprise": 7}, times=None)
    answers = call_all(service, caller, business)
    assert {answers[operation][name]["surprise"] for operation in OBJECTS} == {7}
    assert {row["surprise"] for operation in LISTS for row in answers[operation][name]} == {7}
    page = answers["messages.list"]
    assert {row["surprise"] for row in (page if place == "bare" else page["data"])} == {7}


def test_a_fault_changes_a_wrapped_error(open_sandbox: OpenSandbox) -> None:
    service, caller = open_sandbox(wrap_errors="data")
    service.fail_next("loans.get", changes={"message": "Gone"})
    assert caller.get("/v1/users/u/loan/l").json() == {"data": {"message": "Gone"}}


@pytest.mark.parametrize(
    ("place", "page"),
    [
        ("pagination", {"pagination": {"offset": 0, "limit": 25, "total": 9}, "data": []}),
        ("beside", {"total": 9, "data": []}),
        ("meta", {"meta": {"total": 9}, "data": []}),
        ("bare", []),
    ],
)
def test_a_fault_replaces_the_total_where_it_is(open_sandbox: OpenSandbox, place: str, page: Any) -> None:
    service, caller = open_sandbox(message_total=place)
    service.fail_next("messages.list", total=9)
    assert caller.get(MESSAGES).json() == page
