"""Fixtures and helpers for message tests: a service for each offset unit."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.cache import cache
from django.db import connection

from portal.gateway import client as gateway
from portal.messaging.models import Message
from servicing.sandbox import Sandbox

START = datetime(2026, 11, 3, 18, tzinfo=UTC)


def emit(sandbox: Sandbox, count: int, *, at: datetime = START, **choices: Any) -> None:
    """Add payments that succeeded, a minute apart; up to 800 of them are on the same day."""
    for number in range(count):
        payload = {"uuid": f"p-{number}", "product": "LOC", "amount": 100 + number, "status": "SUCCEEDED"}
        sandbox.world.message("payment.succeeded", payload, at=at + timedelta(minutes=number), **choices)


def service_ids(sandbox: Sandbox) -> set[str]:
    return {message["uuid"] for message in sandbox.world.messages()}


def saved_ids() -> list[str]:
    return list(Message.objects.values_list("uuid", flat=True))


# Offset units don't depend on the database.
@pytest.fixture(params=["pages", "pages-from-1", "rows"] if connection.vendor == "sqlite" else ["pages"])
def service(
    request: pytest.FixtureRequest, db: None, tmp_path: Path, settings: LazySettings
) -> Iterator[Sandbox]:
    """Connect the portal to a service, once for each offset unit."""
    with Sandbox(tmp_path / "messages.sqlite3", auth="none", offset=request.param) as sandbox:
        settings.SERVICING_URL, settings.SERVICING_AUTH = sandbox.url, "none"
        gateway.client.cache_clear()
        cache.clear()
        yield sandbox
    gateway.client.cache_clear()
