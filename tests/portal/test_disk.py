"""Tests of which SQLite writes wait until they are on disk: all except counts of repeated views."""

from typing import Any

import pytest
from django.db import connection
from django.test import Client as Browser

from servicing.sandbox import Sandbox
from tests import given

NORMAL, FULL = 1, 2


@pytest.mark.skipif(connection.vendor != "sqlite", reason="It is SQLite's one writer that others wait for.")
@pytest.mark.django_db(transaction=True)
def test_only_repeated_views_skip_waiting_for_the_disk(portal_service: Sandbox, viewer: Browser) -> None:
    levels: dict[str, set[int]] = {}

    def record_sync_level(execute: Any, sql: str, *rest: Any) -> Any:
        (level,) = connection.connection.execute("PRAGMA synchronous").fetchone()
        levels.setdefault(" ".join(sql.split()[:3]), set()).add(level)
        return execute(sql, *rest)

    page = given.borrower(portal_service).get_absolute_url()
    with connection.execute_wrapper(record_sync_level):
        viewer.get(page)
        viewer.get(page)
    assert levels['INSERT INTO "audit_entry"'] == {FULL}
    assert levels["UPDATE audit_sighting SET"] == {NORMAL}
    assert levels['SELECT "django_session"."session_key", "django_session"."session_data",'] == {FULL}
