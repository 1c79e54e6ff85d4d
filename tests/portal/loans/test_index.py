"""Tests of the list of loans."""

from datetime import timedelta
from typing import ClassVar

import pytest
from django.test import Client as Browser
from django.utils import timezone

from portal.audit.models import Actor
from portal.gateway import reading
from portal.records.models import Kind
from servicing.sandbox import Sandbox
from tests import given
from tests.portal import pages
from tests.portal.portfolios import PortfolioList

pytestmark = pytest.mark.postgres


class TestList(PortfolioList):
    address = "/loans/"
    rows = "loan-rows"
    kind = Kind.LOAN
    area = "loans"
    noun = "loan"
    heads: ClassVar[list[str]] = [
        *(
            "Amount",
            "Remaining payments",
            "Past due",
            "Due since the copy",
            "Oldest due since the copy",
            "Copy of",
            "Days past due",
            "Aging",
            "Due next",
            "Amount due next",
        ),
        *("Before partial payments", "Status", "Last updated"),
    ]

    def test_a_row_shows_amount_past_due_and_status(self, viewer: Browser, portal_service: Sandbox) -> None:
        opened = timezone.localdate() - timedelta(days=100)
        loan = given.loan(
            portal_service, given.borrower(portal_service), amount="1200.00", interest_rate="0", opened=opened
        )
        reading.read_live(Actor(name="Maya Chen"), reading.LiveCopy(loan))
        found = pages.visible_text(self.fragment(viewer))
        for text in ("$1,200.00", "$300.00", "Past due"):
            assert text in found

    def test_data_check_preset_lists_inconsistent_loans(
        self, viewer: Browser, portal_service: Sandbox
    ) -> None:
        owner = given.borrower(portal_service)
        inconsistent, consistent = (
            given.loan(portal_service, owner, delinquent=True),
            given.loan(portal_service, owner),
        )
        for loan in (inconsistent, consistent):
            reading.read_live(Actor(name="Maya Chen"), reading.LiveCopy(loan))
        found = self.fragment(viewer, "?check=yes")
        assert inconsistent.get_absolute_url() in found
        assert consistent.get_absolute_url() not in found
        assert "Needs a data check" in viewer.get("/loans/").content.decode()
        portal_service.world.amend(inconsistent.uuid, delinquent=False)
        reading.read_live(Actor(name="Maya Chen"), reading.LiveCopy(inconsistent))
        assert inconsistent.get_absolute_url() not in self.fragment(viewer, "?check=yes")

    def test_status_filter_narrows_the_list(self, viewer: Browser, portal_service: Sandbox) -> None:
        active, charged_off = (
            self.add_record(portal_service, status="ACTIVE"),
            self.add_record(portal_service, status="CHARGED_OFF"),
        )
        found = self.fragment(viewer, "?status=CHARGED_OFF")
        assert charged_off.get_absolute_url() in found
        assert active.get_absolute_url() not in found
        assert "Status: Charged off" in found
        assert (
            '<option value="CHARGED_OFF" selected>Charged off</option>'
            in viewer.get("/loans/?status=CHARGED_OFF").content.decode()
        )
