"""What waits for the disk, and what does not: the trail and every write do, a look that only counts does not."""

from typing import Any

import pytest
from django.db import connection
from django.test import Client as Browser

from servicing.sandbox import Sandbox
from tests import given

NORMAL, FULL = 1, 2


@pytest.mark.skipif(connection.vendor != "sqlite", reason="It is SQLite's one writer that others wait for.")
@pytest.mark.django_db(transaction=True)
def test_the_trail_waits_for_the_disk_and_a_repeated_look_does_not(
    portal_service: Sandbox, viewer: Browser
) -> None:
    seen: dict[str, set[int]] = {}

    def watch(execute: Any, sql: str, *rest: Any) -> Any:
        (level,) = connection.connection.execute("PRAGMA synchronous").fetchone()
        seen.setdefault(" ".join(sql.split()[:3]), set()).add(level)
        return execute(sql, *rest)

    page = given.borrower(portal_service).get_absolute_url()
    with connection.execute_wrapper(watch):
        viewer.get(page)
        viewer.get(page)
    assert seen['INSERT INTO "audit_entry"'] == {FULL}
    assert seen["UPDATE audit_sighting SET"] == {NORMAL}
    assert seen['SELECT "django_session"."session_key", "django_session"."session_data",'] == {FULL}
