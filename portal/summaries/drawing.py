"""Draws a document with WeasyPrint. Only the worker process of :mod:`portal.summaries.pdf` imports this."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from weasyprint import CSS, HTML
from weasyprint.logger import PROGRESS_LOGGER
from weasyprint.text.fonts import FontConfiguration
from weasyprint.urls import FatalURLFetchingError, URLFetcher, URLFetcherResponse

from portal.summaries.pdf import NotDrawn, PageListener

STATIC = Path(__file__).resolve().parents[2] / "static"
# A host that cannot exist, so that relative links can be joined; nothing is ever asked of it.
BASE = "https://static.invalid/"
TYPES = {".css": "text/css", ".woff2": "font/woff2"}
# Embedded fonts carry a time of their own; without this it would be now, and no two prints would be the same bytes.
os.environ["SOURCE_DATE_EPOCH"] = "0"
PROGRESS_LOGGER.setLevel(logging.INFO)
PROGRESS_LOGGER.propagate = False


class StaticFiles(URLFetcher):  # type: ignore[misc]  # untyped
    """Style and fonts from our own folder; any other address, of whatever kind, ends the drawing."""

    def __init__(self) -> None:
        super().__init__(allow_redirects=False, fail_on_errors=True)

    def fetch(self, url: str, headers: Any = None) -> URLFetcherResponse:
        path = (STATIC / url.removeprefix(BASE)).resolve()
        if not url.startswith(BASE) or not path.is_relative_to(STATIC) or path.suffix not in TYPES:
            raise ValueError("not one of our static files")
        return URLFetcherResponse(url, path.read_bytes(), {"Content-Type": TYPES[path.suffix]})


@cache
def look() -> tuple[CSS, FontConfiguration]:
    """The style of all documents with its fonts, read once in a process. The two belong together, and to one thread."""
    fonts = FontConfiguration()
    return CSS(url=f"{BASE}css/print.css", url_fetcher=StaticFiles(), font_config=fonts), fonts


class PageCounter(logging.Handler):
    """Counts the pages in what WeasyPrint logs while it lays them out, some of them more than once."""

    def __init__(self, on_page: PageListener) -> None:
        super().__init__()
        self._on_page = on_page
        self._pages = 0

    def emit(self, record: logging.LogRecord) -> None:
        if (
            "Page %d" in str(record.msg)
            and isinstance(record.args, tuple)
            and record.args[0] == self._pages + 1
        ):
            self._pages += 1
            self._on_page(self._pages)


@contextmanager
def counted_pages(on_page: PageListener) -> Iterator[None]:
    """Report pages while a document is laid out."""
    counter = PageCounter(on_page)
    PROGRESS_LOGGER.addHandler(counter)
    try:
        yield
    finally:
        PROGRESS_LOGGER.removeHandler(counter)


def draw(html: str, on_page: PageListener) -> bytes:
    """The PDF, tagged for assistive technology as PDF/UA has it."""
    try:
        style, fonts = look()
        document = HTML(string=html, base_url=BASE, url_fetcher=StaticFiles())
        with counted_pages(on_page):
            return bytes(document.write_pdf(stylesheets=[style], font_config=fonts, pdf_variant="pdf/ua-1"))
    except (Exception, FatalURLFetchingError) as error:  # the second is no Exception
        raise NotDrawn(f"{type(error).__name__}: {error}") from None
