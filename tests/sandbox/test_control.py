"""The control endpoints under ``/_sandbox/``."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from servicing.sandbox import Sandbox

MESSAGES = "/v1/webhooks/endpoints/messages"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Sandbox]:
    with Sandbox(tmp_path / "s.db", control=True, auth="none") as sandbox:
        yield sandbox


def call_control(service: Sandbox, name: str, body: object) -> requests.Response:
    return requests.post(f"{service.url}/_sandbox/{name}", json=body, timeout=5)


def test_control_endpoints_are_off_by_default(tmp_path: Path) -> None:
    with Sandbox(tmp_path / "s.db", auth="none") as service:
        assert call_control(service, "reset", {}).status_code == 404


def test_a_fault_can_be_added_and_removed(service: Sandbox) -> None:
    fault = {"operation": "messages.list", "status": 503, "delay": 0.01, "times": 9}
    assert call_control(service, "faults", fault).status_code == 200
    assert requests.get(service.url + MESSAGES, timeout=5).status_code == 503
    assert requests.delete(f"{service.url}/_sandbox/faults", timeout=5).status_code == 200
    assert requests.get(service.url + MESSAGES, timeout=5).status_code == 200


def test_a_connection_fault_can_be_added(service: Sandbox) -> None:
    fault = {"operation": "messages.list", "interim": [103], "drip": 0.001, "drip_at": "head"}
    assert call_control(service, "faults", fault | {"drip_at": "tail"}).status_code == 400
    assert call_control(service, "faults", fault).status_code == 200
    host, port = service.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=5) as connection:
        connection.sendall(f"GET {MESSAGES} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n".encode())
        assert connection.makefile("rb").readline() == b"HTTP/1.1 103 Interim\r\n"


def test_advance_moves_the_date(service: Sandbox) -> None:
    today = service.world.clock.today()
    call_control(service, "advance", {"days": 3})
    assert (service.world.clock.today() - today).days == 3


def test_a_reset_deletes_all_data(service: Sandbox) -> None:
    service.world.borrower()
    call_control(service, "reset", {})
    assert service.world.users() == []


def test_listed_calls_omit_headers_and_bodies(service: Sandbox) -> None:
    requests.get(f"{service.url}{MESSAGES}?limit=2", timeout=5, headers={"X-Signature": "secret"})
    calls = requests.get(f"{service.url}/_sandbox/calls", timeout=5).json()
    assert calls == [
        {
            "operation": "messages.list",
            "method": "GET",
            "path": MESSAGES,
            "query": {"limit": "2"},
            "status": 200,
        }
    ]


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("faults", {"operation": "nothing"}),
        ("faults", {"operation": "*", "colour": "red"}),
        ("faults", {"operation": "*", "delay": "long"}),
        ("faults", {"operation": "*", "times": "often"}),
        ("faults", []),
        ("advance", {"days": 0}),
        ("advance", {"days": 1.5}),
        ("advance", {}),
    ],
)
def test_invalid_faults_and_days_are_rejected(service: Sandbox, name: str, body: Any) -> None:
    answer = call_control(service, name, body)
    assert (answer.status_code, list(answer.json())) == (400, ["message"])


def test_an_html_form_cannot_call_a_control_endpoint(service: Sandbox) -> None:
    answer = requests.post(f"{service.url}/_sandbox/reset", data={"a": 1}, timeout=5)
    assert answer.status_code == 415


def test_an_unknown_control_endpoint_is_not_found(service: Sandbox) -> None:
    assert call_control(service, "explode", {}).status_code == 404
