"""Exports of offers and applications to CSV, and the link to the offer sheet."""

import csv
import io
from typing import Any

import pytest
from django.test import Client as Browser

from portal.audit.models import Entry
from portal.core.business_date import business_date
from portal.records.models import Borrower
from servicing.sandbox import Sandbox
from tests import given
from tests.portal.applications.answers import UUID, offer, saved_application


@pytest.fixture
def borrower(portal_service: Sandbox) -> Borrower:
    return given.borrower(portal_service, first_name="=Northwind Baking Co LLC")


def download_rows(browser: Browser, address: str) -> list[dict[str, str]]:
    answer: Any = browser.get(address)
    assert answer.status_code == 200
    text = b"".join(answer).decode().removeprefix("\ufeff")
    return list(csv.DictReader(io.StringIO(text, newline="")))


class TestOffers:
    def test_each_offer_is_a_row_with_exact_numbers(self, viewer: Browser, borrower: Borrower) -> None:
        record = saved_application(
            borrower, offer(0, apr="14.9200001", amount=35000.5, explanation="=cmd()", term=None)
        )
        (line,) = download_rows(viewer, f"{record.get_absolute_url()}offers/")
        assert list(line)[:5] == [
            "Offer",
            "ID",
            "Product",
            "Amount",
            "Difference from requested (calculated here)",
        ]
        assert (line["Offer"], line["Amount"], line["APR"]) == ("A", "35000.5", "14.9200001")
        assert line["Copy of"] == str(business_date())
        assert line["Difference from requested (calculated here)"] == "-4999.5"
        assert (line["Start"], line["Explanation"]) == ("2026-12-01", "'=cmd()")
        assert (line["Total of payments (calculated here)"], line["Interest-only period"]) == ("", "")

    def test_the_file_has_the_shown_offers_or_all(self, viewer: Browser, borrower: Borrower) -> None:
        record = saved_application(borrower, *[offer(n, apr=20 - n) for n in range(6)])
        address = f"{record.get_absolute_url()}offers/"
        assert [line["Offer"] for line in download_rows(viewer, f"{address}?sort=apr")] == list("FEDC")
        assert [line["Offer"] for line in download_rows(viewer, f"{address}?all=1")] == list("ABCDEF")

    def test_the_export_is_audited(self, viewer: Browser, borrower: Borrower) -> None:
        record = saved_application(borrower, offer(0), offer(1))
        download_rows(viewer, f"{record.get_absolute_url()}offers/")
        entry = Entry.objects.get(action="applications.export_offers")
        assert (entry.subject_uuid, entry.detail, entry.actor_name) == (
            record.uuid,
            {"rows": 2},
            "Viewer (viewer)",
        )

    def test_an_application_without_an_answer_has_no_file(self, viewer: Browser, borrower: Borrower) -> None:
        record = given.account("application", borrower, UUID.format(9))
        assert viewer.get(f"{record.get_absolute_url()}offers/").status_code == 404


class TestList:
    def test_the_file_matches_the_list(self, viewer: Browser, borrower: Borrower) -> None:
        record = saved_application(borrower, offer(0), offer(1, apr=13.04))
        (line,) = download_rows(viewer, "/applications/export/")
        assert line["Application"] == record.uuid
        assert (line["Borrower"], line["Product"], line["Decision"]) == (
            "'=Northwind Baking Co LLC",
            "LOAN",
            "APPROVED",
        )
        assert (line["Requested"], line["Offers"], line["Best APR"]) == ("40000.00", "2", "13.04")
        assert (line["Created"], line["Added by"]) == ("2026-11-20 10:31:07 PST", "Ana Reyes")

    def test_filters_narrow_the_file(self, viewer: Browser, borrower: Borrower) -> None:
        for n in range(9):
            saved_application(borrower, n=n, status={"decision": "REJECTED" if n % 3 else "APPROVED"})
        assert len(download_rows(viewer, "/applications/export/?status=APPROVED")) == 3
        assert len(download_rows(viewer, "/applications/export/?status=REJECTED&all=1")) == 6

    @pytest.mark.slow
    def test_the_file_has_one_page_or_all(self, viewer: Browser, borrower: Borrower) -> None:
        uuids = [f"c40e91d7-0000-4000-8000-0000000000{n:02}" for n in range(30)]
        for uuid in uuids:
            given.account("application", borrower, uuid)
        assert len(download_rows(viewer, "/applications/export/?page=2")) == 5
        assert {line["Application"] for line in download_rows(viewer, "/applications/export/?all=1")} == set(
            uuids
        )

    def test_filters_and_row_count_are_audited(self, viewer: Browser, borrower: Borrower) -> None:
        saved_application(borrower)
        download_rows(viewer, "/applications/export/?status=APPROVED&all=1")
        entry = Entry.objects.get(action="applications.export")
        assert entry.detail == {"query": "", "filters": {"status": "APPROVED"}, "rows": 1}


class TestOfferSheet:
    def test_only_a_page_with_offers_links_to_the_sheet(self, viewer: Browser, borrower: Borrower) -> None:
        with_offers, without = saved_application(borrower, offer(0), n=1), saved_application(borrower, n=2)
        sheet = f"{with_offers.get_absolute_url()}offer-sheet/"
        assert f'href="{sheet}' in viewer.get(with_offers.get_absolute_url()).content.decode()
        assert viewer.get(sheet).status_code == 200
        assert "offer-sheet" not in viewer.get(without.get_absolute_url()).content.decode()
