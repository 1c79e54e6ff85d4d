"""The history of a payment: its repayment data and messages in order, on the repayment and the loan."""

from datetime import UTC, datetime

import pytest
from django.test import Client as Browser

from portal.audit.models import Actor
from portal.gateway.client import client_for
from portal.messaging.sync import read_front
from servicing.sandbox import Sandbox
from tests import given

STATES = {"SCHEDULED": 1, "SUCCEEDED": 3, "FAILED_AFTER_SUCCESS": 9}
WORDS = ["Message: scheduled", "Effective", "Message: succeeded", "Message: returned after"]


def payment_with_messages(portal_service: Sandbox, *states: str) -> tuple[str, str]:
    """Return the address of a loan and the ID of its payment, with a message for each state."""
    loan = given.loan(portal_service, given.borrower(portal_service))
    payment = portal_service.world.repayment(loan.uuid, status=states[-1], effective_date="2026-10-02")
    for state in states:
        at = datetime(2026, 10, STATES[state], 18, tzinfo=UTC)
        portal_service.world.message(f"payment.{state.lower()}", payment | {"status": state}, at=at)
    read_front(client_for(Actor.system("test")))
    return loan.get_absolute_url(), payment["uuid"]


def read_payment_history(browser: Browser, address: str) -> str:
    page = browser.get(address).content.decode()
    return page.partition("Payment history</h")[2]


@pytest.mark.slow
def test_messages_are_shown_in_order(viewer: Browser, portal_service: Sandbox) -> None:
    loan, payment = payment_with_messages(portal_service, *STATES)
    viewer.get(f"{loan}?refresh=1")
    for address in (f"/repayments/{payment}/", f"{loan}?payment={payment}"):
        history = read_payment_history(viewer, address)
        places = [history.index(word) for word in WORDS]
        assert places == sorted(places)
        assert "time not on file" not in history
        assert 'href="/messages/' in history


def test_a_success_without_a_message_is_shown_without_a_time(
    viewer: Browser, portal_service: Sandbox
) -> None:
    loan, payment = payment_with_messages(portal_service, "SCHEDULED", "FAILED_AFTER_SUCCESS")
    viewer.get(f"{loan}?refresh=1")
    assert "Succeeded before; time not on file" in read_payment_history(viewer, f"/repayments/{payment}/")
