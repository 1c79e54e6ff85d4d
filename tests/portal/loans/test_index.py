"""Loans that this desk knows, across borrowers."""

from datetime import timedelta
from decimal import Decimal

from django.test import Client as Browser
from django.utils import timezone

from portal.registry.models import Kind
from servicing.sandbox import Sandbox
from tests.portal.portfolios import PortfolioList


class TestList(PortfolioList):
    address = "/loans/"
    rows = "loan-rows"
    kind = Kind.LOAN
    area = "loans"
    noun = "loan"
    heads = ["Product", "Status", "Delinquent", "Amount", "Rate", "Next unpaid", "Last checked"]

    def test_amount_rate_and_delinquency_are_shown(self, viewer: Browser, desk: Sandbox) -> None:
        told = {"amount": Decimal("12000.5"), "rate": Decimal("9.25"), "status": "ACTIVE", "flagged": True}
        self.known(desk, **told, due_date=timezone.localdate() - timedelta(days=9))
        found = self.fragment(viewer)
        for text in ("$12,000.50", "9.25%", "Active", "Delinquent", "overdue, 9 days ago"):
            assert text in found

    def test_it_is_narrowed_to_a_status(self, viewer: Browser, desk: Sandbox) -> None:
        active, odd = self.known(desk, status="ACTIVE"), self.known(desk, status="CHARGED_OFF")
        found = self.fragment(viewer, "?status=CHARGED_OFF")
        assert odd.get_absolute_url() in found
        assert active.get_absolute_url() not in found
        assert (
            '<option value="CHARGED_OFF" selected>'
            in viewer.get("/loans/?status=CHARGED_OFF").content.decode()
        )
