"""Sandbox options for behavior that the interface leaves open."""

import time
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import pytest

from servicing.errors import ConfigurationError
from servicing.sandbox import Sandbox
from tests.sandbox.conftest import OpenSandbox

MESSAGES = "/v1/webhooks/endpoints/messages"
JSON_TYPE = {"Content-Type": "application/json"}


@pytest.mark.parametrize(("filters", "query", "body"), [("both", 1, 2), ("query", 1, 3), ("body", 3, 2)])
def test_filters_are_read_from_the_configured_place(
    open_sandbox: OpenSandbox, filters: str, query: int, body: int
) -> None:
    service, caller = open_sandbox(filters=filters)
    for _ in range(3):
        service.world.message("a", {})
    assert len(caller.get(f"{MESSAGES}?limit=1").json()["data"]) == query
    assert len(caller.get(MESSAGES, body=b'{"limit":2}').json()["data"]) == body


def test_an_oversized_page_is_rejected_or_capped(open_sandbox: OpenSandbox) -> None:
    _, caller = open_sandbox(page_cap=40)
    assert caller.get(f"{MESSAGES}?limit=40").json()["pagination"]["limit"] == 40
    assert caller.get(f"{MESSAGES}?limit=41").status_code == 400
    _, caller = open_sandbox(page_cap=20, refuses_larger_pages=False)
    assert caller.get(f"{MESSAGES}?limit=41").json()["pagination"]["limit"] == 20
    assert caller.get(MESSAGES).json()["pagination"]["limit"] == 20


def test_the_json_type_rule_can_be_turned_off(open_sandbox: OpenSandbox) -> None:
    service, caller = open_sandbox(json_type_breaks_reads=False)
    user = service.world.borrower()["uuid"]
    loan = service.world.loan(user)["uuid"]
    assert caller.get(f"/v1/users/{user}/loan/{loan}", headers=JSON_TYPE).status_code == 200


def test_the_status_of_an_unknown_path_is_configurable(open_sandbox: OpenSandbox) -> None:
    _, caller = open_sandbox(unknown_path_status=403)
    assert caller.get("/v1/nothing").status_code == 403
    assert caller.get("/v1/users").status_code == 405
    assert caller.get("/v1/users/b-1/loan/l-1").status_code == 404


@pytest.mark.parametrize(("skew", "status"), [(-20, 200), (90, 403), (-90, 403)])
def test_the_clock_can_be_skewed(open_sandbox: OpenSandbox, skew: float, status: int) -> None:
    _, caller = open_sandbox(clock_skew=skew)
    answer = caller.get(MESSAGES)
    assert answer.status_code == status
    assert abs(parsedate_to_datetime(answer.headers["Date"]).timestamp() - time.time() - skew) < 10


def test_an_unknown_option_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        Sandbox(tmp_path / "s.db", offsett="rows")


def test_the_page_cap_can_change_while_the_service_runs(open_sandbox: OpenSandbox) -> None:
    service, caller = open_sandbox(page_cap=70)
    for _ in range(60):
        service.world.message("a", {})
    assert len(caller.get(f"{MESSAGES}?limit=70").json()["data"]) == 60
    service.choose(page_cap=30)
    assert caller.get(f"{MESSAGES}?limit=31").status_code == 400
    assert len(caller.get(f"{MESSAGES}?limit=30").json()["data"]) == 30
    service.choose(refuses_larger_pages=False)
    assert len(caller.get(f"{MESSAGES}?limit=70").json()["data"]) == 30


@pytest.mark.parametrize(("cap", "size"), [(70, 25), (25, 25), (10, 10)])
def test_the_default_page_is_never_above_the_cap(open_sandbox: OpenSandbox, cap: int, size: int) -> None:
    service, caller = open_sandbox(page_cap=cap)
    for _ in range(30):
        service.world.message("a", {})
    page = caller.get(MESSAGES).json()
    assert (len(page["data"]), page["pagination"]["limit"]) == (size, size)


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ({"offset": "row"}, "offset must be one of pages, pages-from-1, rows, not 'row'."),
        ({"filters": "path"}, "filters must be one of both, query, body, not 'path'."),
        (
            {"message_total": "top"},
            "message_total must be one of pagination, beside, meta, bare, not 'top'.",
        ),
        ({"errors": "xml"}, "errors must be one of message, oauth, list, ok, not 'xml'."),
        ({"page_cap": 0}, "page_cap must be 1 or more."),
    ],
)
def test_an_unknown_choice_is_rejected(
    open_sandbox: OpenSandbox, option: dict[str, Any], sentence: str
) -> None:
    service, _ = open_sandbox()
    for choose in (open_sandbox, service.choose):
        with pytest.raises(ConfigurationError) as caught:
            choose(**option)
        assert str(caught.value) == sentence
