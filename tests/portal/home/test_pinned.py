"""Saved views pinned to the home page."""

import pytest
from django.test import Client as Browser

from portal.records.models import Kind
from portal.tables.models import SavedView
from servicing.sandbox import Sandbox
from tests import given
from tests.portal.home.test_index import read_account


class TestPinned:
    def save_view(self, browser: Browser, name: str, query: str, **fields: str) -> SavedView:
        browser.post("/views/save/", {"list": "repayments:index", "name": name, "query": query} | fields)
        return SavedView.objects.get(name=name)

    def pinned_counts(self, browser: Browser) -> dict[str, str]:
        return {view.name: view.number for view in browser.get("/").context["pinned"]}

    def test_built_in_borrower_views_are_pinned_by_default(
        self, portal_service: Sandbox, viewer: Browser
    ) -> None:
        given.borrower(portal_service)
        assert self.pinned_counts(viewer) == {
            "Past due": "0",
            "Added this week": "1",
            "Incomplete onboarding": "0",
        }

    @pytest.mark.slow
    def test_pinned_views_show_the_count_of_their_list(
        self, portal_service: Sandbox, servicer: Browser
    ) -> None:
        owner = given.borrower(portal_service)
        loan = portal_service.world.loan(owner.uuid)
        portal_service.world.repayment(loan["uuid"], amount="50.00", status="FAILED")
        portal_service.world.repayment(loan["uuid"], amount="60.00")
        read_account(owner, Kind.LOAN, loan["uuid"])
        view, other = (
            self.save_view(servicer, "Failed", "status=FAILED"),
            self.save_view(servicer, "View all", ""),
        )
        assert servicer.post("/", {"view": [view.pk, "x", 999, "9" * 30]}).status_code == 303
        assert self.pinned_counts(servicer) == {"Failed": "1"}
        (url,) = (pinned.url for pinned in servicer.get("/").context["pinned"])
        assert servicer.get(url).context["listing"].total == 1
        servicer.post("/", {"view": [view.pk, other.pk]})
        assert self.pinned_counts(servicer) == {"View all": "2", "Failed": "1"}

    def test_only_own_and_shared_views_can_be_pinned(
        self, portal_service: Sandbox, servicer: Browser, viewer: Browser
    ) -> None:
        private = self.save_view(servicer, "Private", "status=FAILED")
        shared = self.save_view(servicer, "Shared", "status=FAILED", is_shared="on")
        viewer.post("/", {"view": [private.pk, shared.pk]})
        assert self.pinned_counts(viewer) == {"Shared": "0"}
        SavedView.objects.update(is_shared=False)
        assert "Shared" not in self.pinned_counts(viewer)

    def test_a_view_of_an_uncounted_list_has_no_count(
        self, portal_service: Sandbox, servicer: Browser
    ) -> None:
        view = self.save_view(servicer, "Entries", "q=x", list="audit:index")
        servicer.post("/", {"view": [view.pk]})
        assert self.pinned_counts(servicer) == {"Entries": ""}
