"""What every list of accounts promises; each area's test says which list it is."""

from typing import ClassVar
from uuid import uuid4

from django.http import HttpResponse
from django.test import Client as Browser
from django.utils import timezone

from portal.registry.models import Kind, Record
from portal.registry.search.find import MAX_OWNERS
from portal.registry.search.texts import search_text
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import htmx


class AccountList:
    """The promises, kept for one list."""

    address: ClassVar[str]
    rows: ClassVar[str]
    kind: ClassVar[Kind]

    def fragment(self, browser: Browser, query: str = "") -> str:
        answer: HttpResponse = browser.get(f"{self.address}{query}", headers=htmx(self.rows))
        assert answer.status_code == 200
        return answer.content.decode()

    def known(self, sandbox: Sandbox, borrower: str = "Northwind Baking Co LLC", **columns: object) -> Record:
        record = given.account(self.kind, given.borrower(sandbox, first_name=borrower), str(uuid4()))
        Record.objects.filter(pk=record.pk).update(**columns)
        return record

    def test_a_row_leads_to_the_account_and_to_its_borrower(
        self, viewer: Browser, portal_service: Sandbox
    ) -> None:
        record = self.known(portal_service)
        page = viewer.get(self.address).content.decode()
        assert f'href="{record.get_absolute_url()}"' in page
        assert f'href="/borrowers/{record.borrower_uuid}/"' in page
        assert "Northwind Baking Co LLC" in page

    def test_an_account_of_an_unknown_borrower_is_listed_too(self, viewer: Browser) -> None:
        Record.objects.create(kind=self.kind, uuid="a-1", borrower_uuid="nobody")
        assert "nobody" in self.fragment(viewer)

    def test_it_is_found_by_identifier(self, viewer: Browser, portal_service: Sandbox) -> None:
        wanted, other = self.known(portal_service), self.known(portal_service)
        found = self.fragment(viewer, f"?q={wanted.uuid}")
        assert wanted.get_absolute_url() in found
        assert other.get_absolute_url() not in found

    def test_it_is_found_by_the_name_of_its_borrower(self, viewer: Browser, portal_service: Sandbox) -> None:
        wanted, other = self.known(portal_service, "Aurora Borealis Lamps LLC"), self.known(portal_service)
        found = self.fragment(viewer, "?q=borealis")
        assert wanted.get_absolute_url() in found
        assert other.get_absolute_url() not in found

    def test_borrowers_too_many_to_look_at_are_said(self, viewer: Browser, portal_service: Sandbox) -> None:
        self.known(portal_service, "Aurora Borealis Lamps LLC")
        text = search_text("Aurora Borealis")
        many = (Record(kind=Kind.BORROWER, uuid=str(uuid4()), search_text=text) for _ in range(MAX_OWNERS))
        Record.objects.bulk_create(many)
        assert f"More than {MAX_OWNERS} borrowers match" in self.fragment(viewer, "?q=borealis")

    def test_an_archived_one_is_gone(self, viewer: Browser, portal_service: Sandbox) -> None:
        record = self.known(portal_service, archived_at=timezone.now())
        assert record.uuid not in self.fragment(viewer)

    def test_an_empty_list_says_what_will_appear(self, viewer: Browser) -> None:
        assert "None on file" in self.fragment(viewer)

    def test_filters_that_hide_everything_say_so(self, viewer: Browser, portal_service: Sandbox) -> None:
        self.known(portal_service)
        assert "Nothing matches" in self.fragment(viewer, "?q=nothing+like+it")

    def test_what_is_not_understood_breaks_nothing(self, viewer: Browser, portal_service: Sandbox) -> None:
        self.known(portal_service)
        for query in (
            "?sort=evil",
            "?size=7",
            "?page=99",
            "?page=x",
            "?q=%00",
            "?status=%00",
            "?q=%22%5C%25_",
        ):
            assert self.fragment(viewer, query).strip().startswith(f'<div id="{self.rows}"')

    def test_htmx_gets_the_rows_alone(self, viewer: Browser) -> None:
        assert self.fragment(viewer).strip().startswith(f'<div id="{self.rows}"')

    def test_it_asks_the_service_nothing(self, viewer: Browser, portal_service: Sandbox) -> None:
        self.known(portal_service)
        viewer.get(self.address)
        assert portal_service.calls == []

    def order(self, page: str, *records: Record) -> list[int]:
        """The places of the records on the page."""
        places = [page.index(record.get_absolute_url()) for record in records]
        return [sorted(places).index(place) for place in places]
