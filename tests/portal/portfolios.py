"""Tests that only the lists of loans and lines must pass: exports and the refresh of selected accounts."""

import csv
import html
import io
import re
from datetime import date
from typing import Any, ClassVar

import pytest
from django.http import HttpResponse
from django.test import Client as Browser
from django.utils import timezone

from portal.audit.models import Entry
from portal.records.models import Account, Borrower
from portal.tables.pages import MAX_SELECTED
from servicing.figures import FOREVER
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import htmx
from tests.portal.lists import RecordList
from tests.portal.pages import age_record_views, allow_refresh, page, panel, plain


class PortfolioList(RecordList):
    """Runs the shared tests on one list."""

    area: ClassVar[str]
    noun: ClassVar[str]
    heads: ClassVar[list[str]]

    def create_account(self, sandbox: Sandbox, owner: Borrower | None = None, **terms: Any) -> Account:
        """Create an account at the service and on file."""
        make = given.loan if self.noun == "loan" else given.line
        return make(sandbox, owner or given.borrower(sandbox), **terms)

    def read_export(self, browser: Browser, query: str = "") -> list[list[str]]:
        answer = browser.get(f"{self.address}export.csv{query}")
        assert answer.status_code == 200
        return list(csv.reader(io.StringIO(answer.getvalue().decode("utf-8-sig"))))

    def start_refresh(self, browser: Browser, *records: Account, back: str = "") -> HttpResponse:
        """Start a refresh of these accounts, and return the response."""
        chosen = {"uuid": [record.uuid for record in records], "back": back}
        return browser.post(f"{self.address}refresh/", chosen)  # type: ignore[return-value]

    # --- Export ---

    def test_export_columns_match_the_list(self, viewer: Browser, portal_service: Sandbox) -> None:
        record = self.add_record(portal_service, "=1+1")
        heads, row = self.read_export(viewer)
        assert heads[3:] == self.heads
        assert row[:3] == [record.uuid, "'=1+1", record.borrower_uuid]
        shown = self.fragment(viewer)
        export_only = {"Aging", "Amount due next", "Principal as % of limit", "Before partial payments"}
        export_only |= {"Due since the copy", "Oldest due since the copy", "Copy of"}
        assert [head for head in self.heads if head not in export_only and head not in shown] == []

    def test_export_has_the_page_or_all_matches(self, viewer: Browser) -> None:
        for number in range(30):
            Account.objects.create(
                kind=self.kind, uuid=f"a-{number:02}", amount=number, is_past_due=number < 27,
                past_due_rank=1 if number < 27 else None, figures_good_through=FOREVER,
            )  # fmt: skip
        flagged = f"?{'delinquent' if self.noun == 'loan' else 'past_due'}=yes"
        names = [row[0] for row in self.read_export(viewer, f"{flagged}&page=2")[1:]]
        assert names == ["a-01", "a-00"]
        assert len(self.read_export(viewer, f"{flagged}&all=1")) == 28
        entry = Entry.objects.filter(action=f"{self.area}.export").latest("id")
        assert (entry.subject_label, entry.detail["rows"]) == ("all that match", 27)
        assert entry.detail["filters"] == {flagged[1:-4]: "yes"}

    # --- Accounts without a figure ---

    def test_accounts_without_a_figure_are_counted_above_the_whole_list(
        self, viewer: Browser, portal_service: Sandbox
    ) -> None:
        def chip(query: str = "") -> tuple[str, str] | None:
            found = re.search(
                r'id="without-figure" href="([^"]*)".*?>([^<]*)</a>', self.fragment(viewer, query), re.S
            )
            return (html.unescape(found[1]), found[2]) if found else None

        known = self.add_record(portal_service, past_due=0)
        self.add_record(portal_service, has_no_schedule_yet=True)
        assert chip() is None
        answered = {"answer_at": timezone.now()}
        self.add_record(portal_service, is_closed=True, **answered)
        late = self.add_record(portal_service, is_past_due=True, **answered)
        other = self.add_record(portal_service, **answered)
        assert chip("?size=50") == ("?size=50&not_known=yes", "2 accounts without a figure")
        assert chip("?q=northwind") is None
        shown = self.fragment(viewer, "?not_known=yes")
        assert shown.count("<tr data-row>") == 2
        assert late.uuid in shown
        assert other.uuid in shown
        assert known.uuid not in shown
        assert chip("?not_known=yes") is None

    # --- Sorting and change marks ---

    def test_sorting_by_due_date_lists_undated_accounts_last(
        self, viewer: Browser, portal_service: Sandbox
    ) -> None:
        later, never = (
            self.add_record(portal_service, next_due_on=date(2027, 1, 1)),
            self.add_record(portal_service),
        )
        sooner = self.add_record(portal_service, next_due_on=date(2026, 12, 1))
        assert self.order(self.fragment(viewer, "?sort=due"), sooner, later, never) == [0, 1, 2]
        assert self.order(self.fragment(viewer, "?sort=-due"), later, sooner, never) == [0, 1, 2]

    def test_changes_since_the_last_view_are_marked_per_person(
        self, viewer: Browser, servicer: Browser, portal_service: Sandbox
    ) -> None:
        record = self.create_account(portal_service)
        page(viewer, record.get_absolute_url())
        panel(viewer, record.get_absolute_url(), self.noun)
        assert ">Changed</span>" not in self.fragment(viewer)
        age_record_views()
        allow_refresh(record)
        changed = {"amount": 123} if self.noun == "loan" else {"credit_limit": 123}
        portal_service.world.amend(record.uuid, **changed)
        panel(servicer, record.get_absolute_url(), self.noun)
        assert ">Changed</span>" in self.fragment(viewer)
        assert ">Changed</span>" not in self.fragment(servicer)

    # --- Refresh ---

    def test_selected_accounts_are_refreshed_one_by_one(
        self, viewer: Browser, portal_service: Sandbox
    ) -> None:
        one, other, left = (self.create_account(portal_service) for _ in range(3))
        viewer.cookies["js"] = "1"
        started = self.start_refresh(viewer, one, other, back="?sort=due")
        assert started.status_code == 303
        assert "0 of 2 refreshed" in page(viewer, started["Location"])
        assert portal_service.calls == []
        assert "1 of 2 refreshed" in panel(viewer, started["Location"], "refresh-progress")
        portal_service.fail_next(f"{self.area}.{'get' if self.noun == 'loan' else 'statement'}", status=422)
        shown = panel(viewer, started["Location"], "refresh-progress")
        assert "2 of 2 refreshed, 1 failed" in shown
        assert "hx-get" not in shown
        assert f'href="{self.address}?sort=due"' in shown
        assert "2 of 2" in panel(viewer, started["Location"], "refresh-progress")
        assert len(portal_service.calls) == 2 * len(given.reads_of(one.kind))
        left.refresh_from_db()
        assert left.answer is None
        assert Entry.objects.get(action=f"{self.area}.refresh").subject_label == f"2 {self.noun}s"

    @pytest.mark.django_db(transaction=True)
    def test_refresh_continues_without_scripts(self, viewer: Browser, portal_service: Sandbox) -> None:
        records = [self.create_account(portal_service) for _ in range(2)]
        form = plain(viewer, self.address)
        chosen = re.findall(r'type="checkbox" name="uuid" value="([^"]+)" form="refresh-chosen"', form)
        assert set(chosen) == {record.uuid for record in records}
        started = self.start_refresh(viewer, *records)
        first = viewer.get(started["Location"])
        assert first["Refresh"] == "1"
        assert "1 of 2 refreshed" in first.content.decode()
        last = viewer.get(started["Location"])
        assert "Refresh" not in last
        assert "2 of 2 refreshed" in last.content.decode()

    def test_refresh_rejects_no_or_too_many_accounts(self, viewer: Browser, portal_service: Sandbox) -> None:
        many = [
            Account.objects.create(kind=self.kind, uuid=f"a-{n}", borrower_uuid="b")
            for n in range(MAX_SELECTED + 1)
        ]
        for chosen, words in ((many, "Refresh up to 20 at once"), ([], "Nothing selected")):
            rejected = self.start_refresh(viewer, *chosen, back="?page=2")
            assert rejected.status_code == 422
            assert words in html.unescape(rejected.content.decode())
            assert f'href="{self.address}?page=2"' in rejected.content.decode()
        assert portal_service.calls == []
        chosen = re.findall(r'name="uuid"[^>]* checked>', self.fragment(viewer, "?choose=1"))
        assert len(chosen) == MAX_SELECTED

    def test_invalid_refresh_links_make_no_calls(self, viewer: Browser, portal_service: Sandbox) -> None:
        record = self.create_account(portal_service)
        now = timezone.now().replace(tzinfo=None).isoformat()
        for query in (
            "",
            "?since=x",
            f"?uuid={record.uuid}",
            f"?uuid={record.uuid}&since={now}",
            "?uuid=%00",
        ):
            answer = viewer.get(f"{self.address}refresh/{query}", headers=htmx("refresh-progress"))
            assert (answer.status_code, answer["Location"]) == (302, self.address)
        assert portal_service.calls == []
