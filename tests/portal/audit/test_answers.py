"""An answer that finds no database is neither lost nor recorded twice; `make faults` holds the database for longer."""

import pytest

from servicing.sandbox import Sandbox
from tests.faults.answers import LOSSES, Loss, check_write


@pytest.mark.xdist_group("waiting")
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("loss", LOSSES, ids=lambda one: one.name)
@pytest.mark.parametrize("operation", ["borrowers.create_commercial", "borrowers.update"])
def test_an_answer_is_never_lost_or_denied(portal_service: Sandbox, operation: str, loss: Loss) -> None:
    assert check_write(operation, loss, portal_service, seconds=0).words == []
