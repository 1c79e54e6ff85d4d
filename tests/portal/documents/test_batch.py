"""Batches of borrower summaries, which a worker creates in the background."""

import io
import json
import re
import zipfile
from datetime import date, timedelta

import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.test import Client as Browser
from django.utils import timezone
from pypdf import PdfReader

from portal.audit.models import Entry
from portal.documents.batches import print_batch
from portal.documents.models import Batch, Item, Printed, remove_expired
from portal.documents.pdf import MAX_JOINED_PAGES
from portal.jobs.models import Job
from portal.notes.models import Note
from portal.records.models import Account, Answer, Borrower, Kind
from servicing.sandbox import Sandbox
from servicing.sandbox.amortization import add_months
from tests import databases, given
from tests.drills.batches import kill_worker, run_worker
from tests.portal.documents.test_document import elements

pytestmark = [pytest.mark.postgres, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


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
    Answer.objects.filter(pk=borrowers[1].answer_id).update(body="no JSON")
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


def download_pdf(browser: Browser, batch: Batch) -> tuple[bytes, PdfReader]:
    answer = browser.get(f"{batch.get_absolute_url()}download/")
    assert answer["Content-Type"] == "application/pdf"
    return answer.content, PdfReader(io.BytesIO(answer.content), strict=True)


def add_loans(owner: Borrower, number: int, *, installments: int) -> None:
    """Save loans of a borrower, each with a schedule."""
    first = date(2026, 1, 1)
    rows = [
        {
            "number": n,
            "due_date": str(add_months(first, n)),
            "status": "SCHEDULED",
            "total": 995.75,
            "principal": 900.5,
        }
        for n in range(1, installments + 1)
    ]
    given.create_with_answers(
        (
            Account(kind=Kind.LOAN, uuid=f"{owner.uuid}-{n}", borrower_uuid=owner.uuid),
            json.dumps({"uuid": f"{owner.uuid}-{n}", "amount": 24_000, "installments": rows}),
        )
        for n in range(number)
    )  # fmt: skip


@pytest.mark.parametrize("paper", ["letter", "a4"])
def test_a_few_borrowers_are_one_pdf(portal_service: Sandbox, servicer: Browser, paper: str) -> None:
    owners = [given.borrower(portal_service, first_name=f"Alpine (5 0 R) {n}") for n in range(4)]
    for owner, loans in zip(owners, (1, 9, 0, 14), strict=True):
        add_loans(owner, loans, installments=12)
    broken = given.borrower(portal_service, first_name="Broken Alpine")
    Answer.objects.filter(pk=broken.answer_id).update(body="no JSON")
    form = servicer.get("/summaries/batches/").content.decode()
    assert "One PDF with all of them" in form
    batch = start_batch(servicer, "?sort=name", form="joined", section="loans", paper=paper)
    call_command("work", batch=True)
    page = servicer.get(batch.get_absolute_url()).content.decode()
    assert "4 of 5 ready" in page
    assert "Broken Alpine" in page
    assert "Download PDF" in page
    content, pdf = download_pdf(servicer, batch)
    # No sheet has pages of two borrowers, and all have their own page numbers.
    texts = [" ".join(page.extract_text().split()) for page in pdf.pages]
    starts = [number for number, text in enumerate(texts) if "Borrower summary" in text]
    assert [start % 2 for start in starts] == [0, 0, 0, 0]
    for owner, start, end in zip(owners, starts, [*starts[1:], len(texts)], strict=True):
        written = [text for text in texts[start:end] if text]
        assert len(texts[start:end]) - len(written) == len(written) % 2
        assert str(owner) in written[0]
        for number, text in enumerate(written, 1):
            assert f"Page {number} of {len(written)}" in text
    assert len({tuple(map(float, page.mediabox)) for page in pdf.pages}) == 1
    # One bookmark per borrower, with its parts below it.
    tops = [one for one in pdf.outline if not isinstance(one, list)]
    assert [one.title for one in tops] == [str(owner) for owner in owners]
    assert [pdf.get_destination_page_number(one) for one in tops] == starts
    # Tags, language and title as in every document.
    root = pdf.root_object
    assert (root["/Lang"], root["/MarkInfo"]["/Marked"].value) == ("en", True)
    assert b"pdfuaid:part" in root["/Metadata"].get_data()
    assert [page["/StructParents"] for page in pdf.pages] == list(range(len(texts)))
    kinds = [one["/S"] for one in elements(root["/StructTreeRoot"]["/K"][0].get_object())]
    assert (kinds.count("/H1"), pdf.metadata.title) == (4, "Borrower summaries: all borrowers on file")
    # The code on each paper leads to its print, and the file proves itself under each.
    items = batch.items.filter(state=Item.State.DONE)
    assert sorted(items.values_list("code", flat=True)) == sorted(
        Printed.objects.values_list("code", flat=True)
    )
    for item, start in zip(items, starts, strict=True):
        assert f"/verify/{item.code}/" in texts[start]
        upload = SimpleUploadedFile("all.pdf", content, content_type="application/pdf")
        answer = servicer.post(f"/verify/{item.code}/", {"document": upload})
        assert "The file matches the document." in answer.content.decode()


def test_too_many_pages_for_one_pdf_are_a_zip(portal_service: Sandbox, servicer: Browser) -> None:
    for name in ("One", "Two"):
        owner = given.borrower(portal_service, first_name=f"Alpine {name}")
        for _ in range(10):
            Note.objects.create(borrower_uuid=owner.uuid, text="a\n" * 500, author_id=1, author_name="Ana")
    batch = start_batch(servicer, form="joined", section="internal")
    call_command("work", batch=True)
    page = servicer.get(batch.get_absolute_url()).content.decode()
    assert "Too long for one PDF" in page
    assert "Download ZIP file" in page
    archive = download_zip(servicer, batch)
    papers = [PdfReader(io.BytesIO(archive.read(name))) for name in archive.namelist()]
    assert (len(papers), Printed.objects.count()) == (2, 2)
    assert sum(len(paper.pages) for paper in papers) > MAX_JOINED_PAGES


def test_too_many_borrowers_for_one_pdf_are_a_zip(portal_service: Sandbox, servicer: Browser) -> None:
    Borrower.objects.bulk_create(Borrower(uuid=f"b-{n}", name=f"B {n}") for n in range(51))
    assert "One PDF with all of them" not in servicer.get("/summaries/batches/").content.decode()
    batch = start_batch(servicer, form="joined")
    call_command("work", batch=True)
    assert len(download_zip(servicer, batch).namelist()) == 51


def test_a_joined_batch_of_version_1_becomes_a_zip(portal_service: Sandbox, servicer: Browser) -> None:
    given.borrower(portal_service)
    batch = start_batch(servicer)
    databases.go_back("documents", "0001_initial")
    databases.run(
        "UPDATE documents_batch SET form = 'joined'",
        "INSERT INTO documents_turn (person_id, taken_at) VALUES (1, CURRENT_TIMESTAMP)",
    )
    call_command("upgrade", verbosity=0)
    call_command("work", batch=True)
    page = servicer.get(batch.get_absolute_url()).content.decode()
    assert "1 of 1 ready" in page
    assert "Too long" not in page
    assert len(download_zip(servicer, batch).namelist()) == 1


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


@pytest.mark.parametrize("form", Batch.Form.values)
def test_expiry_removes_documents_but_not_print_records(
    portal_service: Sandbox, servicer: Browser, form: str
) -> None:
    given.borrower(portal_service)
    batch = start_batch(servicer, form=form)
    call_command("work", batch=True)
    assert remove_expired() == 0
    long_ago = timezone.now() - timedelta(days=settings.BATCH_DAYS, minutes=1)
    Batch.objects.update(created_at=long_ago)
    assert remove_expired() == 1
    assert not Item.objects.filter(document__isnull=False).exists()
    assert not Batch.objects.filter(document__isnull=False).exists()
    assert "The documents were removed" in servicer.get(batch.get_absolute_url()).content.decode()
    assert servicer.get(f"{batch.get_absolute_url()}download/").status_code == 404
    assert Printed.objects.count() == 1


def test_a_viewer_cannot_create_a_batch(portal_service: Sandbox, viewer: Browser) -> None:
    assert viewer.get("/summaries/batches/").status_code == 403
    assert viewer.post("/summaries/batches/").status_code == 403


def test_a_killed_worker_joins_a_batch_once(portal_service: Sandbox, servicer: Browser) -> None:
    for number in range(10):
        given.borrower(portal_service, first_name=f"Alpine {number}")
    batch = start_batch(servicer, form="joined")
    run_worker(lambda: Job.objects.get(pk=batch.job_id).state == Job.State.RUNNING)
    run_worker(lambda: not Job.objects.get(pk=batch.job_id).is_open)
    assert Printed.objects.count() == 10
    assert len([one for one in download_pdf(servicer, batch)[1].outline if not isinstance(one, list)]) == 10


def test_a_batch_of_which_some_have_their_own_pdf_becomes_a_zip(
    portal_service: Sandbox, servicer: Browser
) -> None:
    for number in range(3):
        given.borrower(portal_service, first_name=f"Alpine {number}")
    batch = start_batch(servicer, form="joined")
    next(print_batch(batch))  # An earlier attempt couldn't join them, and then its worker stopped.
    call_command("work", batch=True)
    assert len([name for name in download_zip(servicer, batch).namelist() if name.endswith(".pdf")]) == 3
    assert Printed.objects.count() == 3


def test_a_killed_worker_neither_loses_nor_repeats_documents(
    portal_service: Sandbox, servicer: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = start_slow_batch(portal_service, servicer, monkeypatch, size=10)
    assert kill_worker(batch, times=1).words == []
