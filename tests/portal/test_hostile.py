"""Sends a few hundred hostile inputs to forms and query strings."""

import pytest
from django.test import Client as Browser

from portal.accounts.roles import Role
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import browser_of
from tests.drills.hostile import attack


@pytest.mark.slow
@pytest.mark.parametrize(
    ("role", "start", "count"),
    [(Role.SUPERVISOR, "/", 200), (Role.ADMIN, "/admin/", 40), (None, "/sign-in/", 60)],
)
def test_hostile_forms_and_queries_cause_no_server_error(
    portal_service: Sandbox, role: Role | None, start: str, count: int
) -> None:
    owner = given.borrower(portal_service)
    loan = given.loan(portal_service, owner, paid=3)
    browser = browser_of(role) if role else Browser()
    starts = [start, loan.get_absolute_url()] if role == Role.SUPERVISOR else [start]
    assert [str(one) for one in attack(browser, starts, count, pages=40)] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "address",
    [
        "/messages/?source=copy&page=beyond_5_²",
        f"/messages/?source=copy&page=beyond_{'9' * 19}_1",
        f"/borrowers/{{borrower}}/?shown={'9' * 5000}",
        f"/admin/accounts/user/{'9' * 5000}/password/",
    ],
)
def test_huge_numbers_in_urls_cause_no_server_error(portal_service: Sandbox, address: str) -> None:
    browser = browser_of(Role.ADMIN)
    assert browser.get(address.format(borrower=given.borrower(portal_service).uuid)).status_code < 500
    assert browser.post("/accounts/sessions/end/", {"session": "9" * 5000}).status_code == 303
