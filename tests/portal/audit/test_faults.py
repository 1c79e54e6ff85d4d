"""Each write under each network fault, once; `make faults` does it at length."""

import pytest
from django.conf import LazySettings
from django.test import Client as Browser

from portal import gateway
from servicing.sandbox import Sandbox
from tests.faults.writes import NETWORK_FAULTS, TIMEOUT_SECONDS, WRITES, NetworkFault, check_write


@pytest.mark.parametrize("fault", NETWORK_FAULTS, ids=lambda one: one.name)
@pytest.mark.parametrize("operation", WRITES)
def test_nothing_is_lost_doubled_or_told_wrong(
    servicer: Browser, portal_service: Sandbox, settings: LazySettings, operation: str, fault: NetworkFault
) -> None:
    settings.APPROVAL_ACTS = []  # A second person has tests of their own.
    if fault.name == "silence":
        settings.SERVICING_TIMEOUT = TIMEOUT_SECONDS
        gateway.client.cache_clear()
    assert check_write(operation, fault, servicer, portal_service).words == []
