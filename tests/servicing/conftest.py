"""What the library's tests share: a client that does not really wait, and servers that answer exactly as told."""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from servicing import Address, Client, NewKeyPerson
from servicing.sandbox import Sandbox

ADDRESS = Address(line_1="401 Congress Ave", zip="78701", city="Austin", state="TX", country="UNITED STATES")


@pytest.fixture
def pauses() -> list[float]:
    """The waits between tries, which nobody waits for."""
    return []


@pytest.fixture
def lending(sandbox: Sandbox, pauses: list[float]) -> Iterator[Client]:
    with Client(
        sandbox.url, client_id=sandbox.client_id, secret=sandbox.secret, sleep=pauses.append
    ) as client:
        yield client
