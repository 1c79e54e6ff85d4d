"""The verification page: the details of a printed document, and the comparison of a file with it."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client as Browser

from portal.audit.models import Entry
from servicing.sandbox import Sandbox
from tests import given


@pytest.fixture
def document(portal_service: Sandbox, viewer: Browser) -> tuple[str, bytes]:
    """Return the code and the bytes of a summary that a viewer printed."""
    answer = viewer.get(f"/borrowers/{given.borrower(portal_service).uuid}/summary.pdf?mode=borrower")
    return answer["X-Document-Code"], answer.content


def upload(browser: Browser, code: str, content: bytes) -> str:
    file = SimpleUploadedFile("document.pdf", content, content_type="application/pdf")
    return browser.post(f"/verify/{code}/", {"document": file}).content.decode()


@pytest.mark.slow
def test_a_code_shows_the_details_of_the_print(document: tuple[str, bytes], servicer: Browser) -> None:
    code, _ = document
    page = servicer.get(f"/verify/{code.lower()}/").content.decode()
    entry = Entry.objects.get(action="summaries.print")
    for words in ("Borrower summary: ", "Viewer", "The borrower", entry.detail["content_sha256"]):
        assert words in page
    assert entry.detail["sha256"] not in page
    assert servicer.get(f"/verify/?code={code}").content.decode().count(code) >= 2


@pytest.mark.slow
def test_a_file_that_differs_by_one_byte_is_detected(document: tuple[str, bytes], servicer: Browser) -> None:
    code, content = document
    altered = bytearray(content)
    altered[len(content) // 2] ^= 1
    assert "The file matches the document." in upload(servicer, code, content)
    assert "the content differs" in upload(servicer, code, bytes(altered))
    assert "bytes; the document has" in upload(servicer, code, content + b"\n")
    results = Entry.objects.filter(action="summaries.verify").values_list("result", flat=True)
    assert sorted(results) == ["different", "different", "same"]


@pytest.mark.slow
def test_submitting_without_a_file_shows_an_error(document: tuple[str, bytes], servicer: Browser) -> None:
    assert "No file selected." in servicer.post(f"/verify/{document[0]}/").content.decode()


def test_an_unknown_code_returns_404(viewer: Browser) -> None:
    for path in ("BS-20261121-NOTOURS/", "?code=%00"):
        answer = viewer.get(f"/verify/{path}")
        assert answer.status_code == 404
        assert "Document not found" in answer.content.decode()
