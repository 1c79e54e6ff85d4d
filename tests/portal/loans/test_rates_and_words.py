"""Rates and statuses as the service sends them, on the loan's page and in the list."""

from decimal import Decimal

import pytest
from django.test import Client as Browser

from portal.accounts.models import User
from portal.records.models import Account
from servicing.sandbox import Sandbox
from tests import given
from tests.portal.pages import panel, visible_text

pytestmark = pytest.mark.django_db(transaction=True)  # other threads call the service


@pytest.mark.slow
@pytest.mark.parametrize(("sent", "listed"), [("35.99995", "36.00%"), ("12.3", "12.30%")])
def test_a_rate_is_as_sent_on_its_page_and_short_in_the_list(
    viewer: Browser, portal_service: Sandbox, sent: str, listed: str
) -> None:
    loan = given.loan(portal_service, given.borrower(portal_service), interest_rate=sent)
    shown = visible_text(panel(viewer, loan.get_absolute_url(), "loan"))
    assert f"Interest rate {sent}%" in shown
    User.objects.filter(username="viewer").update(list_columns={"loans": ["rate"]})
    assert listed in visible_text(viewer.get("/loans/").content.decode())


@pytest.mark.parametrize("status", ["past-due", "Past Due", "past_due"])
def test_an_installment_past_due_is_known_in_any_spelling(
    viewer: Browser, portal_service: Sandbox, status: str
) -> None:
    loan = given.loan(portal_service, given.borrower(portal_service), paid=3)
    body = portal_service.world.store.require("loan", loan.uuid).body
    installments = [row | {"due_date": "2026-01-05", "status": status} for row in body["installments"][:1]]
    for row in installments:
        row["paid_on"] = None
    portal_service.fail_next("loans.get", changes={"installments": installments, "delinquent": True})
    panel(viewer, loan.get_absolute_url(), "loan")
    assert Account.objects.get(pk=loan.pk).past_due == Decimal(installments[0]["total"])
