"""Drill: the database is locked or full, or the portal is killed, as the answer of each change comes."""

import pytest

from servicing.sandbox import Sandbox
from tests.drills.answers import LOSSES, Loss, check_write
from tests.drills.writes import WRITES

pytestmark = [pytest.mark.postgres, pytest.mark.slow]


@pytest.mark.xdist_group("waiting")
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("loss", LOSSES, ids=lambda one: one.name)
@pytest.mark.parametrize("operation", WRITES)
def test_the_outcome_is_shown_and_saved_once(portal_service: Sandbox, operation: str, loss: Loss) -> None:
    assert check_write(operation, loss, portal_service).words == []
