"""Renders a document with WeasyPrint. Only processes of :mod:`portal.documents.pdf` import this module."""

import logging
import os
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from weasyprint import CSS, HTML
from weasyprint.logger import PROGRESS_LOGGER
from weasyprint.text.fonts import FontConfiguration
from weasyprint.urls import FatalURLFetchingError, URLFetcher, URLFetcherResponse

from portal.documents.pdf import NotRendered, PageListener

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
def _style() -> tuple[CSS, FontConfiguration]:
    """Read the documents' style and fonts, once per process. The two belong together, and to one thread."""
    fonts = FontConfiguration()
    return CSS(url=f"{BASE}css/print.css", url_fetcher=StaticFiles(), font_config=fonts), fonts


class PageCounter(logging.Handler):
    """Counts pages from WeasyPrint's log, which reports some of them more than once."""

    def __init__(self, on_page: PageListener) -> None:
        super().__init__()
        self._on_page = on_page
        self._pages = 0

    def emit(self, record: logging.LogRecord) -> None:
        if "Page %d" in str(record.msg) and record.args == (self._pages + 1,):
            self._pages += 1
            self._on_page(self._pages)


def convert(html: str, on_page: PageListener) -> bytes:
    """Render a PDF with tags for assistive technology, as PDF/UA requires."""
    counter = PageCounter(on_page)
    PROGRESS_LOGGER.addHandler(counter)
    try:
        style, fonts = _style()
        document = HTML(string=html, base_url=BASE, url_fetcher=StaticFiles())
        return bytes(document.write_pdf(stylesheets=[style], font_config=fonts, pdf_variant="pdf/ua-1"))
    except (Exception, FatalURLFetchingError) as error:  # FatalURLFetchingError isn't derived from Exception.
        raise NotRendered(f"{type(error).__name__}: {error}") from None
    finally:
        PROGRESS_LOGGER.removeHandler(counter)


def find_missing(text: str) -> str:
    """The characters of a text that none of the documents' fonts has."""
    style, fonts = _style()
    page = f'<!doctype html><html lang="en"><title>Characters</title><body class="paper"><p>{escape(text)}'
    document = HTML(string=page, base_url=BASE, url_fetcher=StaticFiles())
    rendered = document.render(stylesheets=[style], font_config=fonts)
    rendered.write_pdf()
    missing = {chr(code) for font in rendered.fonts.values() for code in font.missing}
    return "".join(character for character in text if character in missing)
