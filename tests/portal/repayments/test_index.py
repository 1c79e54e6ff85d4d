"""The list of all repayments: filters, tabs, totals, order and export."""

import csv
import io
import re
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client as Browser
from django.utils import timezone

from portal.audit.models import Entry
from portal.records.models import Kind, Repayment
from portal.ui.paging import MAX_COUNTED
from servicing.sandbox import Sandbox
from tests import given
from tests.portal.lists import AccountList

pytestmark = pytest.mark.postgres


class TestList(AccountList):
    address = "/repayments/"
    rows = "repayment-rows"
    kind = Kind.REPAYMENT

    def add_record(
        self, sandbox: Sandbox, borrower: str = "Northwind Baking Co LLC", **columns: object
    ) -> Any:
        owner = given.borrower(sandbox, first_name=borrower)
        return Repayment.objects.create(uuid=str(uuid4()), borrower_uuid=owner.uuid, **columns)

    def add_unknown(self, **columns: str) -> None:
        Repayment.objects.create(**columns)

    def name_of(self, record: Any) -> str:
        return "No date"

    def test_a_row_shows_amount_and_status(self, viewer: Browser, portal_service: Sandbox) -> None:
        self.add_record(portal_service, amount=Decimal("310"), status="FAILED_AFTER_SUCCESS")
        found = self.fragment(viewer)
        assert "$310.00" in found
        assert "Returned after posting" in found

    def test_amounts_sort_both_ways(self, viewer: Browser, portal_service: Sandbox) -> None:
        less, more = (
            self.add_record(portal_service, amount=Decimal("12.50")),
            self.add_record(portal_service, amount=Decimal("310")),
        )
        assert self.order(self.fragment(viewer, "?sort=amount"), more, less) == [0, 1]
        assert self.order(self.fragment(viewer, "?sort=-amount"), less, more) == [0, 1]

    @pytest.mark.parametrize(
        ("query", "columns"),
        [
            ("?product=LOC", {"product": "LOC"}),
            ("?status=FAILED", {"status": "FAILED"}),
            ("?type=RETURNED", {"payment_type": "RETURNED"}),
            ("?from=2026-03-08&to=2026-03-08", {"effective_on": "2026-03-08"}),
            ("?least=310&most=%24310.00", {"amount": Decimal("310")}),
            ("?error=yes", {"has_failed": True}),
        ],
    )
    def test_filters_narrow_the_list(
        self, viewer: Browser, portal_service: Sandbox, query: str, columns: dict[str, object]
    ) -> None:
        wanted = self.add_record(portal_service, **columns)
        other = self.add_record(
            portal_service, product="LOAN", status="SUCCEEDED", amount=Decimal(9), effective_on="2026-01-01"
        )
        found = self.fragment(viewer, query)
        assert wanted.get_absolute_url() in found
        assert other.get_absolute_url() not in found

    @pytest.mark.parametrize(
        ("query", "words"),
        [
            ("?from=soon", "Not a date."),
            ("?to=2026-02-30", "Not a date."),
            (
                "?from=2026-03-08&to=2026-03-07",
                "Until “2026-03-07” was ignored. The end is before the start.",
            ),
            ("?least=much", "Enter an amount"),
            ("?most=1e9", "Enter an amount"),
            (
                "?least=310&most=99",
                "At most “99” was ignored. Must be at least the minimum.",
            ),
        ],
    )
    def test_an_invalid_filter_is_ignored_with_a_notice(
        self, viewer: Browser, portal_service: Sandbox, query: str, words: str
    ) -> None:
        known = self.add_record(portal_service, effective_on="2026-03-08", amount=Decimal(310))
        found = self.fragment(viewer, query)
        assert "was ignored" in found
        assert words in found
        assert known.get_absolute_url() in found

    def test_totals_of_months_and_tabs_are_exact(self, viewer: Browser, portal_service: Sandbox) -> None:
        for amount in ("0.1", "0.2", "90071992547409.91"):
            self.add_record(
                portal_service, amount=Decimal(amount), status="SUCCEEDED", effective_on="2026-03-08"
            )
        self.add_record(portal_service, amount=Decimal(5), status="FAILED", effective_on="2026-03-09")
        found = self.fragment(viewer)
        assert "4 repayments, $90,071,992,547,410.21 succeeded" in found
        assert self.read_tabs(found) == {
            "All": ("4", ""),
            "Failed": ("1", "$5.00"),
            "Succeeded": ("3", "$90,071,992,547,410.21"),
        }

    def test_the_last_month_of_the_calendar_has_a_total(
        self, viewer: Browser, portal_service: Sandbox
    ) -> None:
        for day in ("9999-12-01", "9999-12-31"):
            self.add_record(portal_service, amount=Decimal(5), status="SUCCEEDED", effective_on=day)
        assert "2 repayments, $10.00 succeeded" in self.fragment(viewer)

    @pytest.mark.slow
    def test_large_totals_are_exact_and_absurd_amounts_have_none(
        self, viewer: Browser, portal_service: Sandbox
    ) -> None:
        for _ in range(12):
            self.add_record(
                portal_service, amount=Decimal(9 * 10**13), status="SUCCEEDED", effective_on="2026-03-08"
            )
        assert "12 repayments, $1,080,000,000,000,000.00 succeeded" in self.fragment(viewer)
        self.add_record(portal_service, amount=Decimal(10**15), status="SUCCEEDED", effective_on="2026-03-08")
        found = self.fragment(viewer)
        assert "1,080,000,000,000,000" not in found
        assert self.read_tabs(found)["Succeeded"] == ("13", "")

    @pytest.mark.slow
    def test_long_lists_show_a_count_without_totals(self, viewer: Browser) -> None:
        paid = {"status": "SUCCEEDED", "amount": 5, "effective_on": "2026-03-08"}
        Repayment.objects.bulk_create(
            Repayment(uuid=f"r-{number}", **paid) for number in range(MAX_COUNTED + 1)
        )
        Repayment.objects.filter(uuid="r-7").update(status="FAILED")
        found = self.fragment(viewer)
        assert self.read_tabs(found) == {"All": ("10,000+", ""), "Failed": ("", ""), "Succeeded": ("", "")}
        assert "succeeded" not in found
        assert "10,000 repayments, $50,000.00 succeeded" not in self.fragment(viewer, "?status=SUCCEEDED")
        assert "1 to 25 of 10,000+<" in self.fragment(viewer, "?status=SUCCEEDED")
        assert "1 to 1 of 1<" in self.fragment(viewer, "?status=FAILED")

    def test_tab_totals_ignore_the_status_filter(self, viewer: Browser, portal_service: Sandbox) -> None:
        self.add_record(portal_service, amount=Decimal("1.10"), status="SUCCEEDED", effective_on="2026-03-08")
        self.add_record(portal_service, amount=Decimal(5), status="FAILED", effective_on="2026-03-09")
        found = self.fragment(viewer, "?status=SUCCEEDED")
        assert "$5.00" not in found.partition("<table")[2]
        assert self.read_tabs(found) == {
            "All": ("2", ""),
            "Failed": ("1", "$5.00"),
            "Succeeded": ("1", "$1.10"),
        }

    @pytest.mark.slow
    def test_a_tab_total_includes_each_new_repayment(self, viewer: Browser, portal_service: Sandbox) -> None:
        self.add_record(portal_service, status="SUCCEEDED", amount=Decimal(5))
        one = self.read_tabs(viewer.get("/repayments/").content.decode())
        self.add_record(portal_service, status="SUCCEEDED", amount=Decimal(7))
        both = self.read_tabs(viewer.get("/repayments/").content.decode())
        assert [one["Succeeded"], both["Succeeded"]] == [("1", "$5.00"), ("2", "$12.00")]

    @pytest.mark.slow
    def test_tabs_replace_the_status_filter(self, viewer: Browser, portal_service: Sandbox) -> None:
        for status in ("SUCCEEDED", "", "SCHEDULED"):
            self.add_record(portal_service, "Aurora Lamps LLC", status=status, amount=None)
        self.add_record(portal_service, status="FAILED")
        page = viewer.get("/repayments/?q=aurora&status=SUCCEEDED").content.decode()
        assert self.read_tabs(page) == {
            "All": ("3", ""),
            "Scheduled": ("1", "Not known"),
            "No status": ("1", "Not known"),
            "Succeeded": ("1", "Not known"),
        }
        assert re.search(r'status=SUCCEEDED"\s+aria-current="page"', page)
        assert '<select name="status"' not in page
        assert '<input type="hidden" name="status" value="SUCCEEDED">' in page
        assert "Remove the filter Status" not in page
        assert "Remove the filter Text" in page
        assert self.fragment(viewer, "?status=none").count("data-row") == 1

    def test_the_chosen_tab_stays_if_nothing_matches(self, viewer: Browser, portal_service: Sandbox) -> None:
        self.add_record(portal_service, status="FAILED")
        page = viewer.get("/repayments/?status=FAILED&q=zzzz").content.decode()
        assert self.read_tabs(page) == {"All": ("0", ""), "Failed": ("0", "")}
        assert re.search(r'status=FAILED"\s+aria-current="page"', page)
        assert "The filters hide 1 repayment. Search by borrower" in page

    def test_a_status_tab_has_no_status_column(self, viewer: Browser, portal_service: Sandbox) -> None:
        for status in ("SUCCEEDED", "SCHEDULED"):
            self.add_record(portal_service, status=status, amount=Decimal(5))
        for query, is_shown in (("", True), ("?status=SCHEDULED", False)):
            head, _, body = self.fragment(viewer, query).partition("<table")[2].partition("</thead>")
            assert ("Status" in head) is ('class="sd-status"' in body) is is_shown

    def test_the_failed_tab_shows_reasons(self, viewer: Browser, portal_service: Sandbox) -> None:
        self.add_record(portal_service, status="FAILED", amount=Decimal(5))
        found = self.fragment(viewer, "?status=FAILED")
        assert "no reason given" in found
        assert "Reason</th>" in found
        assert "Status</th>" not in found

    def test_no_total_is_shown_if_an_amount_is_missing(
        self, viewer: Browser, portal_service: Sandbox
    ) -> None:
        for day in ("2026-03-08", "2026-03-09"):
            self.add_record(portal_service, status="SUCCEEDED", effective_on=day)
        assert "not totaled: an amount is missing" in self.fragment(viewer)

    def test_upcoming_repayments_come_last_and_have_a_tab(
        self, viewer: Browser, portal_service: Sandbox
    ) -> None:
        day = timezone.localdate()
        past = self.add_record(portal_service, status="SUCCEEDED", effective_on=day - timedelta(days=3))
        later, soon = (
            self.add_record(
                portal_service,
                status="SCHEDULED",
                effective_on=day + timedelta(days=days),
                amount=Decimal(days),
            )
            for days in (9, 2)
        )
        found = self.fragment(viewer)
        assert self.order(found, past, soon, later) == [0, 1, 2]
        assert re.search(r'<tr class="sd-group">\s*<th[^>]*>\s*Scheduled\s', found)
        scheduled = self.fragment(viewer, "?status=SCHEDULED")
        assert self.order(scheduled, soon, later) == [0, 1]
        assert past.get_absolute_url() not in scheduled

    @pytest.mark.slow
    def test_paging_follows_dates_without_repeating_rows(
        self, viewer: Browser, portal_service: Sandbox
    ) -> None:
        today = timezone.localdate()
        past, *upcoming = repayments = [
            self.add_record(
                portal_service,
                status="SCHEDULED" if days else "SUCCEEDED",
                effective_on=today + timedelta(days=days),
            )
            for days in range(29)
        ]
        pages = [self.fragment(viewer, f"?page={number}") for number in (1, 2)]
        assert self.order(pages[0], past, *upcoming[:24]) == list(range(25))
        assert self.order(pages[1], *upcoming[24:]) == [0, 1, 2, 3]
        assert not any(one.get_absolute_url() in pages[1] for one in repayments[:25])

    def read_tabs(self, page: str) -> dict[str, tuple[str, str]]:
        """Return the count and the total of each tab."""
        (tabs,) = re.findall(r'<nav class="sd-tabs" aria-label="Status".*?</nav>', page, re.S)
        found = {}
        for link in re.findall(r"<a .*?>(.*?)</a>", tabs, re.S):
            name, number, amount = (*map(str.strip, re.split(r"<span.*?>", link)), "", "")[:3]
            found[name] = number.removesuffix("</span>").strip(), amount.removesuffix("</span>").strip()
        return found

    def read_export(self, browser: Browser, query: str = "") -> list[list[str]]:
        answer = browser.get(f"/repayments/export.csv{query}")
        text = b"".join(answer.streaming_content).decode()  # type: ignore[attr-defined]
        return list(csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline="")))[1:]

    def test_the_export_respects_the_filters(self, viewer: Browser, portal_service: Sandbox) -> None:
        wanted = self.add_record(portal_service, "=cmd", status="FAILED", amount=Decimal("310.00"))
        self.add_record(portal_service, status="SUCCEEDED")
        ((uuid, borrower, *_, bank, batch, ach),) = self.read_export(viewer, "?status=FAILED&all=1")
        assert (uuid, borrower, bank, batch, ach) == (wanted.uuid, "'=cmd", "", "", "")

    @pytest.mark.slow
    def test_the_export_has_the_page_or_all_matches(self, viewer: Browser, portal_service: Sandbox) -> None:
        for _ in range(27):
            self.add_record(portal_service)
        assert len(self.read_export(viewer)) == 25
        assert len(self.read_export(viewer, "?all=1")) == 27

    def test_json_lines_contain_amounts_as_numbers(self, viewer: Browser, portal_service: Sandbox) -> None:
        self.add_record(portal_service, status="FAILED", amount=Decimal("310"))
        self.add_record(portal_service, status="SUCCEEDED")
        answer = viewer.get("/repayments/export.csv?status=FAILED&all=1&format=jsonl")
        (line,) = b"".join(answer.streaming_content).splitlines()  # type: ignore[attr-defined]
        assert b'"Amount":310.0000' in line

    def test_an_export_is_recorded(self, viewer: Browser, portal_service: Sandbox) -> None:
        self.add_record(portal_service, status="FAILED")
        self.read_export(viewer, "?status=FAILED&all=1")
        entry = Entry.objects.get(action="repayments.export")
        assert entry.detail == {"query": "", "filters": {"status": "FAILED"}, "rows": 1}
