"""Each write under each accident of the service, once; `make faults` does it at length."""

import pytest
from django.conf import LazySettings
from django.test import Client as Browser

from portal import gateway
from servicing.sandbox import Sandbox
from tests.faults.writes import ACCIDENTS, PATIENCE, WRITES, Accident, judged


@pytest.mark.parametrize("accident", ACCIDENTS, ids=lambda one: one.name)
@pytest.mark.parametrize("operation", WRITES)
def test_nothing_is_lost_doubled_or_told_wrong(
    servicer: Browser, portal_service: Sandbox, settings: LazySettings, operation: str, accident: Accident
) -> None:
    settings.APPROVAL_ACTS = []  # A second person has tests of their own.
    if accident.name == "silence":
        settings.SERVICING_TIMEOUT = PATIENCE
        gateway.client.cache_clear()
    assert judged(operation, accident, servicer, portal_service).words == []
