"""Statement PDFs: their pages, figures and texts."""

import io
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pypdf
import pytest
import requests

from servicing.sandbox import Sandbox


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Sandbox]:
    with Sandbox(tmp_path / "s.db", today=date(2026, 5, 20)) as sandbox:
        yield sandbox


def statement_pdf(service: Sandbox, purchases: int, **borrower: Any) -> pypdf.PdfReader:
    """Open the statement of a month with this number of purchases."""
    line = service.world.line(service.world.borrower(**borrower)["uuid"], limit=90_000)["uuid"]
    for number in range(purchases):
        service.world.draw(line, f"{number + 1}.25")
    url = service.world.statement(line, "2026-05-20")["url"]
    return pypdf.PdfReader(io.BytesIO(requests.get(service.url + url, timeout=5).content), strict=True)


@pytest.mark.parametrize(("purchases", "pages"), [(0, 1), (19, 1), (20, 2), (58, 2), (59, 3), (97, 3)])
def test_more_purchases_fill_more_pages(service: Sandbox, purchases: int, pages: int) -> None:
    document = statement_pdf(service, purchases)
    assert len(document.pages) == pages
    assert f"Page {pages} of {pages}" in document.pages[-1].extract_text()


def test_a_document_shows_borrower_account_and_amounts(service: Sandbox) -> None:
    text = statement_pdf(service, 3, first_name="Cañón & Sons, “Très Bon” Łtd").pages[0].extract_text()
    assert "Cañón & Sons, “Très Bon” ?td" in text
    assert "418 Harbor Street" in text
    assert "Eugene, OR 97401" in text
    assert "05/20/2026" in text
    assert "Balance on this statement" in text
    assert text.count("$6.75") == 2
    assert "$89,993.25" in text


def test_a_month_without_activity_has_a_note(service: Sandbox) -> None:
    assert "No activity in this period." in statement_pdf(service, 0).pages[0].extract_text()


def test_a_long_name_is_wrapped(service: Sandbox) -> None:
    name = "The Long Established Company of Merchants and Millers of the Upper Valley of the River"
    text = statement_pdf(service, 0, first_name=name).pages[0].extract_text()
    assert " ".join(text.split()).count("Upper Valley of the River") == 1


def test_the_same_statement_gives_the_same_document(service: Sandbox) -> None:
    line = service.world.line(service.world.borrower()["uuid"], statement_pdf=75)["uuid"]
    url = service.url + service.world.statement(line, "2026-05-20")["url"]
    assert requests.get(url, timeout=5).content == requests.get(url, timeout=5).content


def test_an_unknown_document_is_not_found(service: Sandbox) -> None:
    answer = requests.get(f"{service.url}/documents/none.pdf", timeout=5)
    assert (answer.status_code, answer.json()) == (404, {"message": "Statement not found"})
