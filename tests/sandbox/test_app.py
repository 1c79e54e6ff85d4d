"""What the service answers over real HTTP."""

from typing import Any

import pytest
import requests

from servicing.sandbox import Sandbox
from tests.sandbox.caller import Caller


def test_a_business_is_created_and_its_identifiers_are_not_answered(
    service: Sandbox, caller: Caller, business: dict[str, Any]
) -> None:
    answer = caller.post("/v1/users", business)

    assert answer.status_code == 200, answer.text
    user = answer.json()
    assert user["first_name"] == "O'Neil & Daughters, LLC"
    assert user["user_type"] == "BUSINESS"
    assert user["key_people"][0]["title"] == "OWNER"
    assert "EIN" not in user
    assert service.world.received_ein(user["uuid"]) == "123456789"
    assert service.calls[-1].operation == "borrowers.create_commercial"
    assert service.calls[-1].status == 200


def test_a_cut_after_commit_leaves_the_borrower_behind(
    service: Sandbox, caller: Caller, business: dict[str, Any]
) -> None:
    service.fail_next("borrowers.create_commercial", cut_after_commit=True)

    with pytest.raises(requests.ConnectionError):
        caller.post("/v1/users", business)

    assert [user["first_name"] for user in service.world.users()] == ["O'Neil & Daughters, LLC"]
    assert service.calls[-1].status is None
