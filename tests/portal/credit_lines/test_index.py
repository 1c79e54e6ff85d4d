"""Lines of credit that this desk knows, across borrowers."""

from decimal import Decimal
from typing import ClassVar

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
    heads: ClassVar[list[str]] = [
        *("Limit", "Principal", "Principal as % of limit", "Available", "Past due", "Days past due", "Aging"),
        *("Due next", "Amount due next", "Last updated"),
    ]

    def test_most_past_due_stands_first_and_what_was_not_told_last(
        self, viewer: Browser, portal_service: Sandbox
    ) -> None:
        less = self.known(portal_service, past_due=Decimal("12.50"), past_due_rank=Decimal("12.50"))
        untold, more = (
            self.known(portal_service),
            self.known(portal_service, past_due=Decimal("310"), past_due_rank=Decimal("310")),
        )
        assert self.order(self.fragment(viewer, "?sort=past_due"), more, less, untold) == [0, 1, 2]
        assert self.order(self.fragment(viewer, "?sort=-past_due"), less, more, untold) == [0, 1, 2]
