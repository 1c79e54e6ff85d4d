"""Repayments that this desk knows, across borrowers."""

from decimal import Decimal

from django.test import Client as Browser

from portal.registry.models import Kind
from servicing.sandbox import Sandbox
from tests.portal.lists import AccountList


class TestList(AccountList):
    address = "/repayments/"
    rows = "repayment-rows"
    kind = Kind.REPAYMENT

    def test_state_and_amount_are_in_words(self, viewer: Browser, desk: Sandbox) -> None:
        self.known(desk, amount=Decimal("310"), status="FAILED_AFTER_SUCCESS")
        found = self.fragment(viewer)
        assert "$310.00" in found
        assert "Returned after it had succeeded" in found

    def test_the_order_of_amounts_can_be_turned_round(self, viewer: Browser, desk: Sandbox) -> None:
        less, more = self.known(desk, amount=Decimal("12.50")), self.known(desk, amount=Decimal("310"))
        one_way = self.order(self.fragment(viewer, "?sort=amount"), less, more)
        assert self.order(self.fragment(viewer, "?sort=-amount"), less, more) == one_way[::-1]
