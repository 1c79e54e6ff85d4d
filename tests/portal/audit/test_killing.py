"""The portal is killed while staff write through it, a few times; `make faults` kills it two hundred times."""

import pytest

from servicing.sandbox import Sandbox
from tests.faults.killing import kill_portal


@pytest.mark.django_db(transaction=True)
def test_a_portal_that_is_killed_loses_doubles_and_says_nothing_wrong(portal_service: Sandbox) -> None:
    found, forms = kill_portal(portal_service, times=2)
    assert found.words == []
    assert forms > 0
