"""A loan is read and statements are flipped by links alone, as a browser without scripts follows them."""

import html
import re
from datetime import date
from urllib.parse import urljoin

from django.conf import LazySettings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.test import Client as Browser
from django.utils import timezone

from portal.credit_lines import documents
from servicing.sandbox import Sandbox
from tests import given
from tests.portal.pages import plain


def link(page: str, words: str) -> str:
    """Where the first link with these words leads."""
    found = next(one for one in re.findall(r"<a\b.*?</a>", page, re.DOTALL) if words in one)
    return html.unescape(re.search(r'href="([^"#]*)', found)[1])  # type: ignore[index]


def test_a_long_schedule_is_opened_and_ordered_by_links(viewer: Browser, portal_service: Sandbox) -> None:
    loan = given.loan(portal_service, given.borrower(portal_service), installments=360, paid=40)
    listed = plain(viewer, "/loans/")
    address = link(listed, loan.uuid[:8])
    shown = plain(viewer, address)
    assert "360 installments" in shown
    whole = plain(viewer, urljoin(address, link(shown, " later<")))
    assert whole.count('<th scope="row" class="sd-num">') == 360


def test_three_statements_are_flipped_by_links(
    viewer: Browser, portal_service: Sandbox, settings: LazySettings
) -> None:
    settings.DEBUG = True
    documents._fetcher.cache_clear()
    line = given.line(portal_service, given.borrower(portal_service), opened=date(2026, 1, 1))
    for month in (2, 3, 4):
        portal_service.world.statement(line.uuid, f"2026-0{month}-15")
    address = line.get_absolute_url()
    for words, day in (("Newest", "2026-04-15"), ("Earlier", "2026-03-15"), ("Earlier", "2026-02-15")):
        address = urljoin(address, link(plain(viewer, address), words))
        document = re.search(r'<iframe[^>]* src="([^"]+)"', plain(viewer, address))
        assert document
        assert day in document[1]
        assert b"".join(viewer.get(document[1]).streaming_content).startswith(b"%PDF-")  # type: ignore[attr-defined]


def test_how_far_an_import_is_is_loaded_again_by_a_link(supervisor: Browser) -> None:
    ids = SimpleUploadedFile("ids.csv", b"kind,uuid,borrower_uuid,label\nborrower,b-1,,Northwind\n")
    sent = {"ids": ids, "exported_on": timezone.localdate().isoformat()}
    address = supervisor.post("/registry/import/", sent)["Location"]
    waiting = plain(supervisor, address)
    assert "Starts when a worker is free" in waiting
    call_command("work", batch=True)
    ended = plain(supervisor, urljoin(address, link(waiting, "Load again")))
    assert ("1 line imported, 0 rejected" in " ".join(ended.split()), "Load again" in ended) == (True, False)
