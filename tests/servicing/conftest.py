"""Fixtures for the client library's tests: a client that never sleeps and a server with scripted answers."""

from collections.abc import Iterator

import pytest

from servicing import Address, Client
from servicing.sandbox import Sandbox
from tests.servicing.wire import Wire


@pytest.fixture
def pauses() -> list[float]:
    """The pauses between tries, recorded instead of slept."""
    return []


@pytest.fixture
def service_client(sandbox: Sandbox, pauses: list[float]) -> Iterator[Client]:
    """A client of the sandbox."""
    with Client(
        sandbox.url, client_id=sandbox.client_id, secret=sandbox.secret, sleep=pauses.append
    ) as client:
        yield client


@pytest.fixture
def address() -> Address:
    return Address(line_1="401 Congress Ave", zip="78701", city="Austin", state="TX", country="UNITED STATES")


@pytest.fixture
def wire() -> Iterator[Wire]:
    with Wire() as server:
        yield server
