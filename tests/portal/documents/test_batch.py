"""Batches of summaries: drawn in the background, each document once, whatever happens to the worker."""

import io
import re
import zipfile
from datetime import timedelta

import pytest
from django.conf import settings
from django.core.management import call_command
from django.test import Client as Browser
from django.utils import timezone
from pypdf import PdfReader

from portal.audit.models import Entry
from portal.documents.models import Batch, Item, Printed, remove_expired
from portal.registry.models import Kind, Record
from servicing.sandbox import Sandbox
from tests import given
from tests.faults.batches import kill_worker

pytestmark = pytest.mark.django_db(transaction=True)


def begun(browser: Browser, query: str = "", **choices: str) -> Batch:
    answer = browser.post(f"/summaries/batches/{query}", {"data": "copies", "chosen": "1", **choices})
    assert answer.status_code == 303
    return Batch.objects.get(pk=re.findall(r"[0-9a-f-]{36}", answer["Location"])[0])


def packed(browser: Browser, batch: Batch) -> zipfile.ZipFile:
    answer = browser.get(f"{batch.get_absolute_url()}download/")
    return zipfile.ZipFile(io.BytesIO(b"".join(answer)))


def test_a_filtered_list_becomes_one_document_each_and_failures_say_why(
    portal_service: Sandbox, servicer: Browser
) -> None:
    wanted = [given.borrower(portal_service, first_name=f"Alpine {name}") for name in ("One", "Two", "Three")]
    given.borrower(portal_service, first_name="Other")
    Record.objects.filter(uuid=wanted[1].uuid, kind=Kind.BORROWER).update(answer="no JSON")
    assert "3 borrowers" in servicer.get("/summaries/batches/?q=alpine").content.decode()
    batch = begun(servicer, "?q=alpine", mode="borrower", section="people")
    call_command("work", batch=True)
    page = servicer.get(batch.get_absolute_url()).content.decode()
    assert "2 of 3 ready" in page
    assert "Alpine Two" in page
    assert "can’t be created" in page
    archive = packed(servicer, batch)
    pdfs = [name for name in archive.namelist() if name.endswith(".pdf")]
    assert len(pdfs) == 2
    assert "Alpine Two" in archive.read("failed.txt").decode()
    text = "".join(page.extract_text() for page in PdfReader(io.BytesIO(archive.read(pdfs[0]))).pages)
    assert "BORROWER COPY" in text
    assert "Position" not in text
    assert Printed.objects.count() == 2
    assert Entry.objects.get(action="summaries.batch").detail["rows"] == 3
    assert Entry.objects.filter(action="summaries.download").count() == 1


def test_one_joined_file_has_the_pages_of_all_documents_each_under_its_bookmark(
    portal_service: Sandbox, servicer: Browser
) -> None:
    for name in ("Alpine (5 0 R) One", "Alpine Two"):
        given.borrower(portal_service, first_name=name)
    batch = begun(servicer, "?sort=name", form="joined")
    call_command("work", batch=True)
    answer = servicer.get(f"{batch.get_absolute_url()}download/")
    whole = PdfReader(io.BytesIO(b"".join(answer)), strict=True)
    kept = [PdfReader(io.BytesIO(item.document)) for item in batch.items.all()]
    pages = [page for one in kept for page in one.pages]
    assert answer["Content-Type"] == "application/pdf"
    assert [page.extract_text() for page in whole.pages] == [page.extract_text() for page in pages]
    assert "'Alpine (5 0 R) One'" in str(whole.outline)
    tags = whole.trailer["/Root"]["/StructTreeRoot"]
    assert len(tags["/K"][0]["/K"]) == len(tags["/ParentTree"]["/Kids"]) == 2
    assert [page["/StructParents"] for page in whole.pages] == list(range(len(pages)))


def test_a_batch_that_is_cancelled_keeps_what_is_finished(portal_service: Sandbox, servicer: Browser) -> None:
    given.borrower(portal_service)
    batch = begun(servicer)
    assert batch.job is not None
    servicer.post(f"/jobs/{batch.job.pk}/cancel/")
    call_command("work", batch=True)
    assert Printed.objects.count() == 0
    assert "Canceled" in servicer.get(batch.get_absolute_url()).content.decode()
    assert servicer.get(f"{batch.get_absolute_url()}download/").status_code == 404


def test_documents_are_removed_after_their_time_and_the_audit_stays(
    portal_service: Sandbox, servicer: Browser
) -> None:
    given.borrower(portal_service)
    batch = begun(servicer)
    call_command("work", batch=True)
    assert remove_expired() == 0
    long_ago = timezone.now() - timedelta(days=settings.BATCH_DAYS, minutes=1)
    Batch.objects.update(created_at=long_ago)
    assert remove_expired() == 1
    assert not Item.objects.filter(document__isnull=False).exists()
    assert "The documents were removed" in servicer.get(batch.get_absolute_url()).content.decode()
    assert servicer.get(f"{batch.get_absolute_url()}download/").status_code == 404
    assert Printed.objects.count() == 1


def test_a_viewer_prints_no_batch(portal_service: Sandbox, viewer: Browser) -> None:
    assert viewer.get("/summaries/batches/").status_code == 403
    assert viewer.post("/summaries/batches/").status_code == 403


def test_a_batch_whose_worker_is_killed_ends_complete_with_no_document_twice(
    portal_service: Sandbox, servicer: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCUMENT_PROCESSES", "1")
    for number in range(10):
        given.borrower(portal_service, first_name=f"Alpine {number}")
    assert kill_worker(begun(servicer), times=1).words == []
