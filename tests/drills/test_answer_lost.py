"""Drill: the answer of each change is lost in each way that a network can lose it."""

import pytest
from django.conf import LazySettings
from django.test import Client as Browser

from portal.gateway import client as gateway
from servicing.sandbox import Sandbox
from tests.drills.writes import NETWORK_FAULTS, TIMEOUT_SECONDS, WRITES, NetworkFault, check_write

pytestmark = [pytest.mark.postgres, pytest.mark.slow]


@pytest.mark.parametrize("fault", NETWORK_FAULTS, ids=lambda one: one.name)
@pytest.mark.parametrize("operation", WRITES)
def test_no_write_is_lost_repeated_or_misreported(
    servicer: Browser, portal_service: Sandbox, settings: LazySettings, operation: str, fault: NetworkFault
) -> None:
    settings.APPROVAL_ACTS = []  # Approvals have their own tests.
    if fault.name == "silence":
        settings.SERVICING_TIMEOUT = TIMEOUT_SECONDS
        gateway.client.cache_clear()
    assert check_write(operation, fault, servicer, portal_service).words == []
