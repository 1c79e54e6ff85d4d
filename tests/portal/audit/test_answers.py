"""Writes whose answer meets a locked, full or killed database; `make faults` keeps it away for longer."""

import pytest

from servicing.sandbox import Sandbox
from tests.faults.answers import LOSSES, Loss, check_write


@pytest.mark.xdist_group("waiting")
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("loss", LOSSES, ids=lambda one: one.name)
@pytest.mark.parametrize("operation", ["borrowers.create_commercial", "borrowers.update"])
def test_the_outcome_is_shown_and_saved_once(portal_service: Sandbox, operation: str, loss: Loss) -> None:
    assert check_write(operation, loss, portal_service, seconds=0).words == []
