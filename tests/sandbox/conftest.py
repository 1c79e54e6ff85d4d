"""Fixtures for tests of the sandbox: an empty sandbox, a caller, and a valid request body."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from servicing.crypto import FieldCipher, key_from_secret
from servicing.sandbox import DEMO_SECRET, Sandbox
from tests.sandbox.caller import Caller

OpenSandbox = Callable[..., tuple[Sandbox, Caller]]


@pytest.fixture(scope="session")
def session_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    with Sandbox(tmp_path_factory.mktemp("service") / "service.db") as sandbox:
        yield sandbox


@pytest.fixture
def service(session_service: Sandbox) -> Sandbox:
    """An empty sandbox."""
    session_service.reset()
    return session_service


@pytest.fixture
def caller(service: Sandbox) -> Iterator[Caller]:
    caller = Caller(service.url)
    yield caller
    caller.session.close()


@pytest.fixture
def open_sandbox(tmp_path: Path) -> Iterator[OpenSandbox]:
    """Return a function that starts a sandbox with options and returns it with a caller."""
    running: list[tuple[Sandbox, Caller]] = []

    def start(**options: Any) -> tuple[Sandbox, Caller]:
        service = Sandbox(tmp_path / "s.db", **options).start()
        running.append((service, Caller(service.url, secret=service.secret)))
        return running[-1]

    yield start
    for service, caller in running:
        caller.session.close()
        service.close()


@pytest.fixture
def cipher() -> FieldCipher:
    return FieldCipher(key_from_secret(DEMO_SECRET))


@pytest.fixture
def business(cipher: FieldCipher) -> dict[str, Any]:
    """The body of a request that creates a business."""
    place = {
        "line_1": "77 Quarry Road",
        "city": "Burlington",
        "state": "VT",
        "zip": "05401",
        "country": "UNITED STATES",
    }
    person = {
        "first_name": "Nadia",
        "last_name": "Osei",
        "title": "OWNER",
        "citizenship": "US",
        "email": "nadia@quarryroad.example",
        "phone": "8025550164",
        "address": place,
    }
    return {
        "first_name": "O'Neil & Daughters, LLC",
        "email": "office@quarryroad.example",
        "entity": "LIMITED_LIABILITY_COMPANY",
        "EIN": cipher.encrypt("123456789"),
        "phone": "8025550131",
        "user_type": "business",
        "start_date": "2012-05-31",
        "address": place,
        "key_people": [person],
    }
