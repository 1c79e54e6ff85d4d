"""Draws a document with WeasyPrint. Only the worker process of :mod:`portal.summaries.pdf` imports this."""

import os
from functools import cache
from pathlib import Path
from typing import Any

from weasyprint import CSS, HTML
from weasyprint.text.fonts import FontConfiguration
from weasyprint.urls import FatalURLFetchingError, URLFetcher, URLFetcherResponse

from portal.summaries.pdf import NotDrawn

STATIC = Path(__file__).resolve().parents[2] / "static"
# A host that cannot exist, so that relative links can be joined; nothing is ever asked of it.
BASE = "https://static.invalid/"
TYPES = {".css": "text/css", ".woff2": "font/woff2"}
# Embedded fonts carry a time of their own; without this it would be now, and no two prints would be the same bytes.
os.environ["SOURCE_DATE_EPOCH"] = "0"


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


def draw(html: str) -> bytes:
    """The PDF, tagged for assistive technology as PDF/UA has it."""
    try:
        style, fonts = look()
        document = HTML(string=html, base_url=BASE, url_fetcher=StaticFiles())
        return bytes(document.write_pdf(stylesheets=[style], font_config=fonts, pdf_variant="pdf/ua-1"))
    except (Exception, FatalURLFetchingError) as error:  # the second is no Exception
        raise NotDrawn(f"{type(error).__name__}: {error}") from None
