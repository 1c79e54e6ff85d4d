"""Drill: the portal is killed while eight people send changes."""

import pytest

from servicing.sandbox import Sandbox
from tests.drills.killing import kill_portal

pytestmark = [pytest.mark.postgres, pytest.mark.slow]


@pytest.mark.django_db(transaction=True)
def test_a_killed_portal_loses_and_repeats_no_write(portal_service: Sandbox) -> None:
    found, forms = kill_portal(portal_service, times=2)
    assert found.words == []
    assert forms > 0
