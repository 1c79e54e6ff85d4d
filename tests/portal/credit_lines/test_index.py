"""Lines of credit that this desk knows, across borrowers."""

from decimal import Decimal

from django.test import Client as Browser

from portal.registry.models import Kind
from servicing.sandbox import Sandbox
from tests.portal.portfolios import PortfolioList


class TestList(PortfolioList):
    address = "/lines/"
    rows = "line-rows"
    kind = Kind.LINE
    area = "credit_lines"
    noun = "line"
    heads = ["Limit", "Past due", "Payment due", "Last checked"]

    def test_most_past_due_stands_first_and_what_was_not_told_last(
        self, viewer: Browser, desk: Sandbox
    ) -> None:
        less, untold = self.known(desk, past_due=Decimal("12.50")), self.known(desk)
        more = self.known(desk, past_due=Decimal("310"))
        assert self.order(self.fragment(viewer, "?sort=past_due"), more, less, untold) == [0, 1, 2]
        assert self.order(self.fragment(viewer, "?sort=-past_due"), less, more, untold) == [0, 1, 2]
