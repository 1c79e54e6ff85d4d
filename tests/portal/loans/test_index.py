"""Loans that this desk knows, across borrowers."""

from decimal import Decimal

from django.test import Client as Browser

from portal.registry.models import Kind
from servicing.sandbox import Sandbox
from tests.portal.lists import AccountList


class TestList(AccountList):
    address = "/loans/"
    rows = "loan-rows"
    kind = Kind.LOAN

    def test_amount_and_delinquency_are_shown(self, viewer: Browser, desk: Sandbox) -> None:
        self.known(desk, amount=Decimal("12000.5"), status="ACTIVE", flagged=True)
        found = self.fragment(viewer)
        for text in ("$12,000.50", "Active", "Delinquent"):
            assert text in found

    def test_it_is_narrowed_to_a_status(self, viewer: Browser, desk: Sandbox) -> None:
        active, odd = self.known(desk, status="ACTIVE"), self.known(desk, status="CHARGED_OFF")
        found = self.fragment(viewer, "?status=CHARGED_OFF")
        assert odd.get_absolute_url() in found
        assert active.get_absolute_url() not in found
