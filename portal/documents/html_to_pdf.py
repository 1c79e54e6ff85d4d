"""Renders a document with WeasyPrint. Only processes of :mod:`portal.documents.pdf` import this module."""

import logging
import os
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from weasyprint import CSS, HTML, Document, Page
from weasyprint.logger import PROGRESS_LOGGER
from weasyprint.text.fonts import FontConfiguration
from weasyprint.urls import FatalURLFetchingError, URLFetcher, URLFetcherResponse

from portal.documents.pdf import MAX_JOINED_PAGES, Joined, Listener, NotRendered

STATIC = Path(__file__).resolve().parents[2] / "static"
# A host that can't exist, as a base for relative links. It is never called.
BASE = "https://static.invalid/"
TYPES = {".css": "text/css", ".woff2": "font/woff2"}
# The time in embedded fonts; the current time would make the bytes of every print differ.
os.environ["SOURCE_DATE_EPOCH"] = "0"
PROGRESS_LOGGER.setLevel(logging.INFO)
PROGRESS_LOGGER.propagate = False


class StaticFiles(URLFetcher):  # type: ignore[misc]  # untyped
    """Loads styles and fonts from our folder, and images from the document; any other address stops the rendering."""

    def __init__(self) -> None:
        super().__init__(allow_redirects=False, fail_on_errors=True)

    def fetch(self, url: str, headers: Any = None) -> URLFetcherResponse:
        if url.startswith("data:image/"):
            return super().fetch(url, headers)
        path = (STATIC / url.removeprefix(BASE)).resolve()
        if not url.startswith(BASE) or not path.is_relative_to(STATIC) or path.suffix not in TYPES:
            raise ValueError("not one of our static files")
        return URLFetcherResponse(url, path.read_bytes(), {"Content-Type": TYPES[path.suffix]})


@cache
def style() -> tuple[CSS, FontConfiguration]:
    """Read the documents' style and fonts, which belong together."""
    fonts = FontConfiguration()
    return CSS(url=f"{BASE}css/print.css", url_fetcher=StaticFiles(), font_config=fonts), fonts


class PageCounter(logging.Handler):
    """Counts pages from WeasyPrint's log, which reports some of them more than once."""

    def __init__(self, on_page: Listener) -> None:
        super().__init__()
        self._on_page = on_page
        self._pages = 0

    def emit(self, record: logging.LogRecord) -> None:
        if "Page %d" in str(record.msg) and record.args == (self._pages + 1,):
            self._pages += 1
            self._on_page(self._pages)


def convert(html: str, on_page: Listener) -> bytes:
    PROGRESS_LOGGER.addHandler(PageCounter(on_page))
    return _write(_lay_out(html))


def convert_together(htmls: list[str], title: str, on_paper: Listener) -> Joined:
    """Render papers as one PDF; stop at the one that has too many pages, because all are in memory."""
    papers: list[Document | NotRendered] = []
    for html in htmls:
        try:
            papers.append(_lay_out(html))
        except NotRendered as reason:
            papers.append(reason)
        documents = [paper for paper in papers if isinstance(paper, Document)]
        if sum(_sheets(document) for document in documents) > MAX_JOINED_PAGES:
            return Joined(None, [_write(one) if isinstance(one, Document) else one for one in papers])
        on_paper(len(papers))
    reasons = [paper if isinstance(paper, NotRendered) else None for paper in papers]
    return Joined(_join(documents, title) if documents else None, reasons)


def _sheets(document: Document) -> int:
    """The pages of a document in a joined PDF, with the blank one that follows an odd number."""
    return len(document.pages) + len(document.pages) % 2


def _join(documents: list[Document], title: str) -> bytes:
    """One PDF of all pages. A blank page follows an odd number, so that no sheet has pages of two documents."""
    pages = [
        page
        for document in documents
        for page in [*document.pages, *([_blank_like(document.pages[0])] if len(document.pages) % 2 else [])]
    ]
    joined = documents[0].copy(pages)
    joined.metadata.title, joined.metadata.description = title, None
    return _write(joined)


def _blank_like(page: Page) -> Page:
    size = f"<style>@page {{ size: {page.width}px {page.height}px }}</style>"
    return HTML(string=f'<html lang="en"><title>Blank</title>{size}').render(font_config=style()[1]).pages[0]


def _lay_out(html: str) -> Document:
    css, fonts = style()
    try:
        document = HTML(string=html, base_url=BASE, url_fetcher=StaticFiles())
        return document.render(stylesheets=[css], font_config=fonts, pdf_variant="pdf/ua-1")
    except MemoryError:
        raise
    except (Exception, FatalURLFetchingError) as error:  # FatalURLFetchingError isn't derived from Exception.
        raise NotRendered(f"{type(error).__name__}: {error}") from None


def _write(document: Document) -> bytes:
    """Write a PDF with tags for assistive technology, as PDF/UA requires."""
    try:
        return bytes(document.write_pdf(pdf_variant="pdf/ua-1"))
    except MemoryError:
        raise
    except (Exception, FatalURLFetchingError) as error:
        raise NotRendered(f"{type(error).__name__}: {error}") from None


def find_missing(text: str, on_page: Listener) -> str:
    """The characters of a text that none of the documents' fonts has."""
    page = f'<!doctype html><html lang="en"><title>Characters</title><body class="paper"><p>{escape(text)}'
    rendered = _lay_out(page)
    rendered.write_pdf()
    missing = {chr(code) for font in rendered.fonts.values() for code in font.missing}
    return "".join(character for character in text if character in missing)
