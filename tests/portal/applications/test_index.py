"""The list of applications on file, of all borrowers."""

from datetime import UTC, datetime

import pytest
from django.test import Client as Browser
from django.utils import timezone

from portal.records.models import Answer, Application, Kind
from servicing.sandbox import Sandbox
from tests import given
from tests.portal.applications.answers import offer, saved_application
from tests.portal.lists import RecordList

pytestmark = pytest.mark.postgres


class TestList(RecordList):
    address = "/applications/"
    rows = "application-rows"
    kind = Kind.APPLICATION

    def test_the_decision_filter_narrows_the_list(self, viewer: Browser, portal_service: Sandbox) -> None:
        approved, rejected = (
            self.add_record(portal_service, decision="APPROVED"),
            self.add_record(portal_service, decision="REJECTED"),
        )
        found = self.fragment(viewer, "?status=REJECTED")
        assert rejected.get_absolute_url() in found
        assert approved.get_absolute_url() not in found

    def test_a_row_shows_decision_offers_and_best_apr(self, viewer: Browser, portal_service: Sandbox) -> None:
        saved_application(given.borrower(portal_service), offer(0), offer(1, apr=13.0375))
        found = self.fragment(viewer)
        for words in (
            "$40,000.00",
            "Approved",
            ">2</td>",
            'title="13.0375%">13.04%<',
            "Nov 20, 2026, 1:31 PM",
            "Ana Reyes",
        ):
            assert words in found

    def test_no_best_apr_is_shown_if_one_is_missing(self, viewer: Browser, portal_service: Sandbox) -> None:
        record = saved_application(given.borrower(portal_service), offer(0), offer(1, apr=None))
        found = self.fragment(viewer)
        assert record.get_absolute_url() in found
        assert "14.92%" not in found

    @pytest.mark.slow
    def test_the_newest_application_is_first(self, viewer: Browser, portal_service: Sandbox) -> None:
        owner = given.borrower(portal_service)
        times = [
            "2026-11-19 23:00:00 PST",
            "2026-11-20 10:31:07 PST",
            "2026-11-20 10:00:00 IST",
            "soon",
            None,
        ]
        paths = [
            saved_application(owner, n=number, created_at=at).get_absolute_url()
            for number, at in enumerate(times)
        ]

        def order(query: str) -> list[int]:
            page = self.fragment(viewer, query)
            return sorted(range(len(paths)), key=lambda number: page.index(f'"{paths[number]}"'))

        newest = [1, 2, 0, 4, 3]  # Without a time last; a clock time in an uncertain zone is put in order.
        assert order("") == order("?sort=submitted") == newest
        assert order("?sort=-submitted") == [0, 2, 1, 3, 4]

    @pytest.mark.slow
    def test_values_shared_by_all_rows_are_shown_once(self, viewer: Browser, portal_service: Sandbox) -> None:
        for hour, status in enumerate(("APPROVED", "REJECTED", "APPROVED"), 15):
            added_at = datetime(2026, 11, 3, hour, tzinfo=UTC)
            self.add_record(portal_service, product="BUILD_CREDIT", decision=status, created_at=added_at)
        found = self.fragment(viewer)
        assert found.count("Credit builder") == 1
        assert "The same in every row: Product (Credit builder), Created" in found
        assert "Added (Nov 3, 2026)" in found
        assert "Added" not in found.partition("<thead>")[2].partition("</thead>")[0]
        assert found.count("Rejected") == 1
        assert "Product" in self.fragment(viewer, "?sort=product").partition("</thead>")[0]
        self.add_record(portal_service, created_at=datetime(2026, 11, 4, 15, tzinfo=UTC))
        assert "Added" in self.fragment(viewer).partition("<thead>")[2].partition("</thead>")[0]

    def test_filters_find_missing_decisions_and_products(
        self, viewer: Browser, portal_service: Sandbox
    ) -> None:
        complete, incomplete = (
            self.add_record(portal_service, decision="APPROVED", product="LOAN"),
            self.add_record(portal_service),
        )
        for query in ("?status=none", "?product=none"):
            found = self.fragment(viewer, query)
            assert incomplete.get_absolute_url() in found
            assert complete.get_absolute_url() not in found

    @pytest.mark.slow
    def test_the_date_filter_uses_the_local_day_added(self, viewer: Browser, portal_service: Sandbox) -> None:
        days = {
            day: datetime(2026, 11, day, 4, 30, tzinfo=UTC) for day in (2, 3, 4)
        }  # Late on the day before, in the business time zone.
        old, wanted, new = (self.add_record(portal_service, created_at=at) for at in days.values())
        found = self.fragment(viewer, "?from=2026-11-02&to=2026-11-02")
        assert wanted.get_absolute_url() in found
        assert old.get_absolute_url() not in found
        assert new.get_absolute_url() not in found
        assert "Added from: Nov 2, 2026" in found

    @pytest.mark.parametrize("query", ["?from=soon", "?to=2026-02-30", "?from=2026-03-08&to=2026-03-07"])
    def test_invalid_date_filters_are_ignored_with_a_notice(
        self, viewer: Browser, portal_service: Sandbox, query: str
    ) -> None:
        record = self.add_record(portal_service, created_at=datetime(2026, 3, 9, tzinfo=UTC))
        found = self.fragment(viewer, query)
        assert "was ignored" in found
        assert record.get_absolute_url() in found

    def test_an_active_filter_is_a_removable_chip(self, viewer: Browser, portal_service: Sandbox) -> None:
        self.add_record(portal_service, decision="REJECTED")
        found = self.fragment(viewer, "?status=REJECTED")
        assert "Decision: Rejected" in found
        assert 'aria-label="Remove the filter Decision"' in found

    @pytest.mark.slow
    def test_filters_offer_every_value_on_file(self, viewer: Browser, portal_service: Sandbox) -> None:
        self.add_record(portal_service, decision="COUNTER_OFFERED", product="MICRO_LEASE")
        page = viewer.get(self.address).content.decode()
        assert '<option value="COUNTER_OFFERED">Counter offered</option>' in page
        assert '<option value="MICRO_LEASE">MICRO_LEASE</option>' in page

    @pytest.mark.parametrize(
        ("sort", "order"),
        [("created", [2, 1, 0]), ("-created", [0, 1, 2]), ("amount", [0, 2, 1]), ("decision", [2, 0, 1])],
    )
    def test_the_list_can_be_sorted(
        self, viewer: Browser, portal_service: Sandbox, sort: str, order: list[int]
    ) -> None:
        columns = [
            {"amount": 3, "decision": "REJECTED"},
            {"amount": 1, "decision": "APPROVED"},
            {"amount": 2, "decision": "PENDING"},
        ]
        records = [self.add_record(portal_service, **each) for each in columns]
        assert self.order(self.fragment(viewer, f"?sort={sort}"), *records) == order

    def test_a_failing_refresh_is_marked(self, viewer: Browser, portal_service: Sandbox) -> None:
        record = self.add_record(portal_service)
        said = Answer.objects.create(kind=record.kind, uuid=record.uuid, failing_since=timezone.now())
        Application.objects.filter(pk=record.pk).update(answer=said)
        assert "Not responding" in self.fragment(viewer)
