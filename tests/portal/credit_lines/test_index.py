"""The list of all lines of credit."""

from decimal import Decimal
from typing import ClassVar

import pytest
from django.test import Client as Browser

from portal.records.models import Kind
from servicing.sandbox import Sandbox
from tests.portal.portfolios import PortfolioList

pytestmark = pytest.mark.postgres


class TestList(PortfolioList):
    address = "/lines/"
    rows = "line-rows"
    kind = Kind.LINE
    area = "credit_lines"
    noun = "line"
    heads: ClassVar[list[str]] = [
        *("Limit", "Principal", "Principal as % of limit", "Available", "Past due"),
        *("Due since the copy", "Oldest due since the copy", "Copy of", "Days past due", "Aging"),
        *("Due next", "Amount due next", "Last updated"),
    ]

    def test_past_due_sorts_missing_amounts_last_both_ways(
        self, viewer: Browser, portal_service: Sandbox
    ) -> None:
        less = self.add_record(portal_service, past_due=Decimal("12.50"), past_due_rank=Decimal("12.50"))
        missing, more = (
            self.add_record(portal_service),
            self.add_record(portal_service, past_due=Decimal("310"), past_due_rank=Decimal("310")),
        )
        assert self.order(self.fragment(viewer, "?sort=past_due"), more, less, missing) == [0, 1, 2]
        assert self.order(self.fragment(viewer, "?sort=-past_due"), less, more, missing) == [0, 1, 2]
