"""Tests that every list of accounts must pass; each area's test class names its list."""

import re
from typing import Any, ClassVar
from uuid import uuid4

from django.http import HttpResponse
from django.test import Client as Browser
from django.utils import timezone

from portal.records.models import Borrower, Kind
from portal.records.rows import new_record, records_of
from portal.records.search import MAX_OWNERS
from portal.records.texts import search_text
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import htmx
from tests.portal.pages import visible_text


class AccountList:
    """Runs the shared tests on one list."""

    address: ClassVar[str]
    rows: ClassVar[str]
    kind: ClassVar[Kind]

    def fragment(self, browser: Browser, query: str = "") -> str:
        answer: HttpResponse = browser.get(f"{self.address}{query}", headers=htmx(self.rows))
        assert answer.status_code == 200
        return answer.content.decode()

    def add_record(
        self, sandbox: Sandbox, borrower: str = "Northwind Baking Co LLC", **columns: object
    ) -> Any:
        record = given.account(self.kind, given.borrower(sandbox, first_name=borrower), str(uuid4()))
        records_of(self.kind).filter(pk=record.pk).update(**columns)
        return record

    def test_a_row_links_to_the_account_and_its_borrower(
        self, viewer: Browser, portal_service: Sandbox
    ) -> None:
        record = self.add_record(portal_service)
        page = viewer.get(self.address).content.decode()
        row = re.split("<tr data-row", page)[1].partition("</tr>")[0]
        head = re.search(r'<th scope="row">(.*?)</th>', row, re.DOTALL)
        owner = re.search(r'<td class="sd-borrower">(.*?)</td>', row, re.DOTALL)
        assert head
        assert owner
        assert re.findall('href="([^"]*)"', head[1]) == [record.get_absolute_url()]
        assert visible_text(head[1]).startswith(self.name_of(record))
        assert re.findall('href="([^"]*)"', owner[1]) == [f"/borrowers/{record.borrower_uuid}/"]
        assert visible_text(owner[1]) == "Northwind Baking Co LLC"

    def name_of(self, record: Any) -> str:
        """Return what the link of a row says."""
        return f"{self.address.strip('/').removesuffix('s').capitalize()} {record.uuid[:8]}"

    def add_unknown(self, *, uuid: str, borrower_uuid: str) -> None:
        """Add an account of a borrower that isn't on file."""
        record = new_record(self.kind, uuid, created_by="")
        record.borrower_uuid = borrower_uuid
        record.save()

    def test_an_account_of_an_unknown_borrower_is_listed(self, viewer: Browser) -> None:
        self.add_unknown(uuid="a-1", borrower_uuid="nobody")
        assert "nobody" in self.fragment(viewer)

    def test_search_finds_an_account_by_id(self, viewer: Browser, portal_service: Sandbox) -> None:
        wanted, other = self.add_record(portal_service), self.add_record(portal_service)
        found = self.fragment(viewer, f"?q={wanted.uuid}")
        assert wanted.get_absolute_url() in found
        assert other.get_absolute_url() not in found

    def test_search_finds_an_account_by_borrower_name(self, viewer: Browser, portal_service: Sandbox) -> None:
        wanted, other = (
            self.add_record(portal_service, "Aurora Borealis Lamps LLC"),
            self.add_record(portal_service),
        )
        found = self.fragment(viewer, "?q=borealis")
        assert wanted.get_absolute_url() in found
        assert other.get_absolute_url() not in found

    def test_a_search_matching_too_many_borrowers_shows_a_notice(
        self, viewer: Browser, portal_service: Sandbox
    ) -> None:
        self.add_record(portal_service, "Aurora Borealis Lamps LLC")
        text = search_text("Aurora Borealis")
        many = (Borrower(uuid=str(uuid4()), search_text=text) for _ in range(MAX_OWNERS))
        Borrower.objects.bulk_create(many)
        assert f"More than {MAX_OWNERS} borrowers match" in self.fragment(viewer, "?q=borealis")

    def test_an_empty_list_says_none_on_file(self, viewer: Browser) -> None:
        assert "None on file" in self.fragment(viewer)

    def test_filters_without_matches_show_a_notice(self, viewer: Browser, portal_service: Sandbox) -> None:
        self.add_record(portal_service)
        assert "Nothing matches" in self.fragment(viewer, "?q=nothing+like+it")

    def test_invalid_list_parameters_are_ignored(self, viewer: Browser, portal_service: Sandbox) -> None:
        self.add_record(portal_service)
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

    def test_htmx_receives_only_the_rows(self, viewer: Browser) -> None:
        assert self.fragment(viewer).strip().startswith(f'<div id="{self.rows}"')

    def test_the_list_makes_no_service_calls(self, viewer: Browser, portal_service: Sandbox) -> None:
        self.add_record(portal_service)
        viewer.get(self.address)
        assert portal_service.calls == []

    def order(self, page: str, *records: Any) -> list[int]:
        """Return the rank of each record on the page."""
        places = [page.index(record.get_absolute_url()) for record in records]
        return [sorted(places).index(place) for place in places]


class RecordList(AccountList):
    """Also what only lists of records have, which may be archived."""

    def test_archived_accounts_are_not_listed(self, viewer: Browser, portal_service: Sandbox) -> None:
        record = self.add_record(portal_service, archived_at=timezone.now())
        assert record.uuid not in self.fragment(viewer)
