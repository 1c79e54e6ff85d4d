"""Tests that a browser without scripts can read a loan, statements and import progress with links."""

import html
import re
from datetime import date
from urllib.parse import urljoin

import pytest
from django.conf import LazySettings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.test import Client as Browser
from django.utils import timezone

from portal.credit_lines import documents
from servicing.sandbox import Sandbox
from tests import given
from tests.portal.pages import plain


def link_to(page: str, words: str) -> str:
    """Return the target of the first link with these words."""
    found = next(one for one in re.findall(r"<a\b.*?</a>", page, re.DOTALL) if words in one)
    return html.unescape(re.search(r'href="([^"#]*)', found)[1])  # type: ignore[index]


@pytest.mark.slow
def test_links_open_a_loan_and_its_full_schedule(viewer: Browser, portal_service: Sandbox) -> None:
    loan = given.loan(portal_service, given.borrower(portal_service), installments=360, paid=40)
    list_page = plain(viewer, "/loans/")
    address = link_to(list_page, loan.uuid[:8])
    loan_page = plain(viewer, urljoin(address, link_to(plain(viewer, address), "Refresh")))
    assert "360 installments" in loan_page
    full_schedule = plain(viewer, urljoin(address, link_to(loan_page, " later<")))
    assert full_schedule.count('<th scope="row" class="sd-num">') == 360


@pytest.mark.slow
def test_links_page_through_statements(
    viewer: Browser, portal_service: Sandbox, settings: LazySettings
) -> None:
    settings.DEBUG = True
    documents._fetcher.cache_clear()
    line = given.line(portal_service, given.borrower(portal_service), opened=date(2026, 1, 1))
    for month in (2, 3, 4):
        portal_service.world.statement(line.uuid, f"2026-0{month}-15")
    address = f"{line.get_absolute_url()}?refresh=1"
    for words, day in (("Newest", "2026-04-15"), ("Earlier", "2026-03-15"), ("Earlier", "2026-02-15")):
        address = urljoin(address, link_to(plain(viewer, address), words))
        document = re.search(r'<iframe[^>]* src="([^"]+)"', plain(viewer, address))
        assert document
        assert day in document[1]
        assert b"".join(viewer.get(document[1]).streaming_content).startswith(b"%PDF-")  # type: ignore[attr-defined]


def test_a_link_reloads_the_progress_of_an_import(supervisor: Browser) -> None:
    ids = SimpleUploadedFile("ids.csv", b"kind,uuid,borrower_uuid,label\nborrower,b-1,,Northwind\n")
    form = {"ids": ids, "exported_on": timezone.localdate().isoformat()}
    address = supervisor.post("/registry/import/", form)["Location"]
    waiting = plain(supervisor, address)
    assert "Starts when a worker is free" in waiting
    call_command("work", batch=True)
    finished = plain(supervisor, urljoin(address, link_to(waiting, "Load again")))
    assert (
        "1 record imported, 0 lines rejected" in " ".join(finished.split()),
        "Load again" in finished,
    ) == (
        True,
        False,
    )


def test_messages_open_after_scripts_were_turned_off(viewer: Browser, portal_service: Sandbox) -> None:
    portal_service.world.message("payment.succeeded", {"uuid": "p-1"})
    viewer.cookies["js"] = "1"
    address = "/messages/?event=payment.succeeded"
    page = plain(viewer, address)
    assert "data-row" not in page
    answer = viewer.get(link_to(page, "Load messages"), headers={"Referer": f"http://testserver{address}"})
    assert (answer.status_code, answer["Location"]) == (302, f"http://testserver{address}")
    assert "data-row" in plain(viewer, address)
