"""Batches of borrower summaries, which a worker creates in the background."""

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
from portal.documents.merge import merge_pdfs
from portal.documents.models import Batch, Item, Printed, remove_expired
from portal.documents.pdf import render
from portal.jobs.models import Job
from portal.registry.models import Kind, Record
from servicing.sandbox import Sandbox
from tests import given
from tests.drills.batches import kill_worker, run_worker

pytestmark = pytest.mark.django_db(transaction=True)


def start_batch(browser: Browser, query: str = "", **choices: str) -> Batch:
    answer = browser.post(f"/summaries/batches/{query}", {"data": "copies", "chosen": "1", **choices})
    assert answer.status_code == 303
    return Batch.objects.get(pk=re.findall(r"[0-9a-f-]{36}", answer["Location"])[0])


def start_slow_batch(
    sandbox: Sandbox, browser: Browser, monkeypatch: pytest.MonkeyPatch, *, size: int
) -> Batch:
    """Start a batch that a worker renders one by one."""
    monkeypatch.setenv("DOCUMENT_PROCESSES", "1")
    for number in range(size):
        given.borrower(sandbox, first_name=f"Alpine {number}")
    return start_batch(browser)


def download_zip(browser: Browser, batch: Batch) -> zipfile.ZipFile:
    answer = browser.get(f"{batch.get_absolute_url()}download/")
    return zipfile.ZipFile(io.BytesIO(b"".join(answer)))


def test_a_zip_has_a_pdf_per_borrower_and_a_list_of_failures(
    portal_service: Sandbox, servicer: Browser
) -> None:
    borrowers = [
        given.borrower(portal_service, first_name=f"Alpine {name}") for name in ("One", "Two", "Three")
    ]
    given.borrower(portal_service, first_name="Other")
    Record.objects.filter(uuid=borrowers[1].uuid, kind=Kind.BORROWER).update(answer="no JSON")
    page = servicer.get("/summaries/batches/?q=alpine")
    assert "3 borrowers" in page.content.decode()
    assert page.context["options"].sections == {"position", "repayments"}
    batch = start_batch(servicer, "?q=alpine", mode="borrower", section="people")
    call_command("work", batch=True)
    page = servicer.get(batch.get_absolute_url()).content.decode()
    assert "2 of 3 ready" in page
    assert "Alpine Two" in page
    assert "can’t be created" in page
    archive = download_zip(servicer, batch)
    pdfs = [name for name in archive.namelist() if name.endswith(".pdf")]
    assert len(pdfs) == 2
    assert "Alpine Two" in archive.read("failed.txt").decode()
    text = "".join(page.extract_text() for page in PdfReader(io.BytesIO(archive.read(pdfs[0]))).pages)
    assert "BORROWER COPY" in text
    assert "Position" not in text
    assert Printed.objects.count() == 2
    assert Entry.objects.get(action="summaries.batch").detail["rows"] == 3
    assert Entry.objects.filter(action="summaries.download").count() == 1


def test_a_joined_pdf_has_all_pages_and_bookmarks(portal_service: Sandbox, servicer: Browser) -> None:
    for name in ("Alpine (5 0 R) One", "Alpine Two"):
        given.borrower(portal_service, first_name=name)
    batch = start_batch(servicer, "?sort=name", form="joined")
    call_command("work", batch=True)
    answer = servicer.get(f"{batch.get_absolute_url()}download/")
    joined = PdfReader(io.BytesIO(b"".join(answer)), strict=True)
    originals = [PdfReader(io.BytesIO(item.document)) for item in batch.items.all()]
    printed = [page for page in joined.pages if page.extract_text()]
    pages = [page for original in originals for page in original.pages]
    assert answer["Content-Type"] == "application/pdf"
    assert [page.extract_text() for page in printed] == [page.extract_text() for page in pages]
    assert "'Alpine (5 0 R) One'" in str(joined.outline)
    tags = joined.trailer["/Root"]["/StructTreeRoot"]
    assert len(tags["/K"][0]["/K"]) == len(tags["/ParentTree"]["/Kids"]) == 2
    assert [page["/StructParents"] for page in printed] == list(range(len(pages)))


@pytest.mark.parametrize("paper", ["letter", "a4"])
def test_no_sheet_of_a_joined_pdf_has_pages_of_two_borrowers(paper: str) -> None:
    counts = [1, 2, 3, 1, 4, 5]
    documents = [
        (f"Borrower {number}", render(
            f"<!doctype html><html lang=en><title>T</title><style>@page {{ size: {paper} }}</style>"
            + f"<p style='break-after: page'>Borrower {number}" * (count - 1) + f"<h1>Borrower {number}</h1>"
        ))
        for number, count in enumerate(counts)
    ]  # fmt: skip
    joined = PdfReader(io.BytesIO(b"".join(merge_pdfs(documents))), strict=True)
    owners = [page.extract_text().partition("\n")[0] for page in joined.pages]
    expected = [
        words
        for number, count in enumerate(counts)
        for words in [f"Borrower {number}"] * count + [""] * (count % 2)
    ]
    assert owners == expected
    assert len({tuple(page.mediabox) for page in joined.pages}) == 1
    starts = [joined.get_destination_page_number(one) for one in joined.outline if not isinstance(one, list)]
    assert [start % 2 for start in starts] == [0] * len(counts)


def test_a_batch_canceled_before_it_starts_prints_nothing(portal_service: Sandbox, servicer: Browser) -> None:
    given.borrower(portal_service)
    batch = start_batch(servicer)
    assert batch.job is not None
    servicer.post(f"/jobs/{batch.job.pk}/cancel/")
    call_command("work", batch=True)
    assert Printed.objects.count() == 0
    assert "Canceled" in servicer.get(batch.get_absolute_url()).content.decode()
    assert servicer.get(f"{batch.get_absolute_url()}download/").status_code == 404


def test_canceling_keeps_finished_documents(
    portal_service: Sandbox, servicer: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So many that the worker stops long before the last one.
    batch = start_slow_batch(portal_service, servicer, monkeypatch, size=60)
    finished = batch.items.filter(state=Item.State.DONE)

    def is_canceled() -> bool:
        job = Job.objects.get(pk=batch.job_id)
        if finished.exists() and not job.cancel_asked_at:
            servicer.post(f"/jobs/{job.pk}/cancel/")
        return job.state == Job.State.CANCELLED

    run_worker(is_canceled)
    ready = finished.count()
    assert 0 < ready < 60
    assert f"{ready} of 60 ready" in servicer.get(batch.get_absolute_url()).content.decode()
    assert len(download_zip(servicer, batch).namelist()) == Printed.objects.count() == ready


def test_expiry_removes_documents_but_not_print_records(portal_service: Sandbox, servicer: Browser) -> None:
    given.borrower(portal_service)
    batch = start_batch(servicer)
    call_command("work", batch=True)
    assert remove_expired() == 0
    long_ago = timezone.now() - timedelta(days=settings.BATCH_DAYS, minutes=1)
    Batch.objects.update(created_at=long_ago)
    assert remove_expired() == 1
    assert not Item.objects.filter(document__isnull=False).exists()
    assert "The documents were removed" in servicer.get(batch.get_absolute_url()).content.decode()
    assert servicer.get(f"{batch.get_absolute_url()}download/").status_code == 404
    assert Printed.objects.count() == 1


def test_a_viewer_cannot_create_a_batch(portal_service: Sandbox, viewer: Browser) -> None:
    assert viewer.get("/summaries/batches/").status_code == 403
    assert viewer.post("/summaries/batches/").status_code == 403


def test_a_killed_worker_neither_loses_nor_repeats_documents(
    portal_service: Sandbox, servicer: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = start_slow_batch(portal_service, servicer, monkeypatch, size=10)
    assert kill_worker(batch, times=1).words == []
