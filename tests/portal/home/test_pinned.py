"""Saved views on the first page."""

from django.test import Client as Browser

from portal.lists.models import SavedView
from portal.registry.models import Kind
from servicing.sandbox import Sandbox
from tests import given
from tests.portal.home.test_index import read


class TestPinned:
    """Saved views on the first page, each with its number of now."""

    def save(self, browser: Browser, name: str, query: str, **fields: str) -> SavedView:
        browser.post("/views/save/", {"list": "repayments:index", "name": name, "query": query} | fields)
        return SavedView.objects.get(name=name)

    def shown(self, browser: Browser) -> dict[str, str]:
        return {one.name: one.number for one in browser.get("/").context["pinned"]}

    def test_until_somebody_chooses_the_views_of_every_list_of_borrowers_stand_there(
        self, portal_service: Sandbox, viewer: Browser
    ) -> None:
        given.borrower(portal_service)
        assert self.shown(viewer) == {"Past due": "0", "Added this week": "1", "Incomplete onboarding": "0"}

    def test_what_is_chosen_stands_there_with_a_number_that_its_list_proves(
        self, portal_service: Sandbox, servicer: Browser
    ) -> None:
        owner = given.borrower(portal_service)
        loan = portal_service.world.loan(owner.uuid)
        portal_service.world.repayment(loan["uuid"], amount="50.00", status="FAILED")
        portal_service.world.repayment(loan["uuid"], amount="60.00")
        read(owner, Kind.LOAN, loan["uuid"])
        view, other = self.save(servicer, "Failed", "status=FAILED"), self.save(servicer, "View all", "")
        assert servicer.post("/", {"view": [view.pk, "x", 999, "9" * 30]}).status_code == 303
        assert self.shown(servicer) == {"Failed": "1"}
        (url,) = (one.url for one in servicer.get("/").context["pinned"])
        assert servicer.get(url).context["listing"].total == 1
        servicer.post("/", {"view": [view.pk, other.pk]})
        assert self.shown(servicer) == {"View all": "2", "Failed": "1"}

    def test_only_ones_own_and_shared_views_can_be_chosen(
        self, portal_service: Sandbox, servicer: Browser, viewer: Browser
    ) -> None:
        private = self.save(servicer, "Private", "status=FAILED")
        shared = self.save(servicer, "Shared", "status=FAILED", is_shared="on")
        viewer.post("/", {"view": [private.pk, shared.pk]})
        assert self.shown(viewer) == {"Shared": "0"}
        SavedView.objects.update(is_shared=False)
        assert "Shared" not in self.shown(viewer)

    def test_a_view_of_a_list_that_is_not_counted_stands_without_a_number(
        self, portal_service: Sandbox, servicer: Browser
    ) -> None:
        view = self.save(servicer, "Entries", "q=x", list="audit:index")
        servicer.post("/", {"view": [view.pk]})
        assert self.shown(servicer) == {"Entries": ""}
