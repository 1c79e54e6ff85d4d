"""Applications that this desk knows, across borrowers."""

from datetime import UTC, datetime

import pytest
from django.test import Client as Browser
from django.utils import timezone

from portal.registry.models import Kind
from servicing.sandbox import Sandbox
from tests import given
from tests.portal.applications.answers import known, offer
from tests.portal.lists import AccountList


class TestList(AccountList):
    address = "/applications/"
    rows = "application-rows"
    kind = Kind.APPLICATION

    def test_it_is_narrowed_to_a_decision(self, viewer: Browser, portal_service: Sandbox) -> None:
        approved, rejected = (
            self.known(portal_service, status="APPROVED"),
            self.known(portal_service, status="REJECTED"),
        )
        found = self.fragment(viewer, "?status=REJECTED")
        assert rejected.get_absolute_url() in found
        assert approved.get_absolute_url() not in found

    def test_a_row_tells_decision_offers_and_the_best_rate(
        self, viewer: Browser, portal_service: Sandbox
    ) -> None:
        known(given.borrower(portal_service), offer(0), offer(1, apr=13.04))
        found = self.fragment(viewer)
        for words in (
            "$40,000.00",
            "Approved",
            ">2</td>",
            "13.04%",
            "Nov 20, 2026, 1:31 PM",
            "Ana Reyes",
        ):
            assert words in found

    def test_a_rate_that_is_missing_leaves_no_best_one(
        self, viewer: Browser, portal_service: Sandbox
    ) -> None:
        known(given.borrower(portal_service), offer(0), offer(1, apr=None))
        assert "14.92%" not in self.fragment(viewer)

    def test_what_is_the_same_in_every_row_is_said_once(
        self, viewer: Browser, portal_service: Sandbox
    ) -> None:
        for hour, status in enumerate(("APPROVED", "REJECTED", "APPROVED"), 15):
            imported = datetime(2026, 11, 3, hour, tzinfo=UTC)
            self.known(portal_service, category="BUILD_CREDIT", status=status, created_at=imported)
        found = self.fragment(viewer)
        assert found.count("Build credit") == 1
        assert "The same in every row: Product (Build credit), Created" in found
        assert "Added (Nov 3, 2026)" in found
        assert "Added" not in found.partition("<thead>")[2].partition("</thead>")[0]
        assert found.count("Rejected") == 1
        assert "Product" in self.fragment(viewer, "?sort=product").partition("</thead>")[0]
        self.known(portal_service, created_at=datetime(2026, 11, 4, 15, tzinfo=UTC))
        assert "Added" in self.fragment(viewer).partition("<thead>")[2].partition("</thead>")[0]

    def test_it_is_narrowed_to_what_was_not_told(self, viewer: Browser, portal_service: Sandbox) -> None:
        told, untold = (
            self.known(portal_service, status="APPROVED", category="LOAN"),
            self.known(portal_service),
        )
        for query in ("?status=none", "?product=none"):
            found = self.fragment(viewer, query)
            assert untold.get_absolute_url() in found
            assert told.get_absolute_url() not in found

    def test_it_is_narrowed_to_the_days_between_which_they_became_known(
        self, viewer: Browser, portal_service: Sandbox
    ) -> None:
        days = {
            day: datetime(2026, 11, day, 4, 30, tzinfo=UTC) for day in (2, 3, 4)
        }  # late on the day before
        old, wanted, new = (self.known(portal_service, created_at=at) for at in days.values())
        found = self.fragment(viewer, "?from=2026-11-02&to=2026-11-02")
        assert wanted.get_absolute_url() in found
        assert old.get_absolute_url() not in found
        assert new.get_absolute_url() not in found
        assert "Added from: Nov 2, 2026" in found

    @pytest.mark.parametrize("query", ["?from=soon", "?to=2026-02-30", "?from=2026-03-08&to=2026-03-07"])
    def test_days_between_which_nothing_can_be_are_named(
        self, viewer: Browser, portal_service: Sandbox, query: str
    ) -> None:
        known = self.known(portal_service, created_at=datetime(2026, 3, 9, tzinfo=UTC))
        found = self.fragment(viewer, query)
        assert "was ignored" in found
        assert known.get_absolute_url() in found

    def test_a_filter_is_a_chip_that_can_be_taken_off(self, viewer: Browser, portal_service: Sandbox) -> None:
        self.known(portal_service, status="REJECTED")
        found = self.fragment(viewer, "?status=REJECTED")
        assert "Decision: Rejected" in found
        assert 'aria-label="Remove the filter Decision"' in found

    def test_every_value_that_occurs_can_be_chosen(self, viewer: Browser, portal_service: Sandbox) -> None:
        self.known(portal_service, status="COUNTER_OFFERED", category="MICRO_LEASE")
        page = viewer.get(self.address).content.decode()
        assert '<option value="COUNTER_OFFERED">COUNTER_OFFERED</option>' in page
        assert '<option value="MICRO_LEASE">MICRO_LEASE</option>' in page

    @pytest.mark.parametrize(
        ("sort", "order"),
        [("created", [2, 1, 0]), ("-created", [0, 1, 2]), ("amount", [0, 2, 1]), ("decision", [2, 0, 1])],
    )
    def test_it_is_sorted(
        self, viewer: Browser, portal_service: Sandbox, sort: str, order: list[int]
    ) -> None:
        columns = [
            {"amount": 3, "status": "REJECTED"},
            {"amount": 1, "status": "APPROVED"},
            {"amount": 2, "status": "PENDING"},
        ]
        records = [self.known(portal_service, **each) for each in columns]
        assert self.order(self.fragment(viewer, f"?sort={sort}"), *records) == order

    def test_an_account_that_does_not_answer_is_marked(
        self, viewer: Browser, portal_service: Sandbox
    ) -> None:
        self.known(portal_service, failing_since=timezone.now())
        assert "Not responding" in self.fragment(viewer)
