"""Drill: the form of each change is sent twice at the same moment."""

import threading
from typing import Any

import pytest

from portal.audit.models import Entry, WriteIntent
from servicing.sandbox import Sandbox
from tests import databases
from tests.drills.answers import RemoteBrowser
from tests.drills.killing import Portal
from tests.drills.writes import WRITES

pytestmark = [pytest.mark.postgres, pytest.mark.slow]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("operation", WRITES)
def test_a_double_click_sends_a_change_once(portal_service: Sandbox, operation: str) -> None:
    portal = Portal(portal_service.url, APPROVAL_ACTS="none")
    databases.forget_connections()
    portal.start()
    try:
        browser: Any = RemoteBrowser(portal)
        sending = WRITES[operation](browser, portal_service)
        portal_service.fail_next(operation, delay=0.5)
        both, codes = threading.Barrier(2), []

        def click() -> None:
            both.wait()
            codes.append(sending.send().status_code)

        threads = [threading.Thread(target=click) for _ in range(2)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    finally:
        portal.kill()
    assert sending.done() == 1
    assert set(codes) <= {303, 409}
    assert 303 in codes
    intent = WriteIntent.objects.get(operation=operation)
    entries = Entry.objects.filter(intent_id=intent.pk).order_by("id").values_list("phase", "result")
    assert list(entries) == [("attempt", ""), ("outcome", "confirmed")]
