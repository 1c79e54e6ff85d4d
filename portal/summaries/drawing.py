"""Draws a document with WeasyPrint. Only the worker process of :mod:`portal.summaries.pdf` imports this."""

import os
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

from fontTools.ttLib import TTFont
from fontTools.varLib.instancer import instantiateVariableFont
from weasyprint import HTML
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
        name, _, weight = url.removeprefix(BASE).partition("?")
        path = (STATIC / name).resolve()
        if not url.startswith(BASE) or not path.is_relative_to(STATIC) or path.suffix not in TYPES:
            raise ValueError("not one of our static files")
        if weight.isdigit():
            return URLFetcherResponse(url, one_weight(path, int(weight)), {"Content-Type": "font/ttf"})
        return URLFetcherResponse(url, path.read_bytes(), {"Content-Type": TYPES[path.suffix]})


@cache
def one_weight(path: Path, weight: int) -> bytes:
    """A variable font at one weight, made once in a process: the engine would make it anew for each document."""
    font = TTFont(path)
    font.flavor = None
    axes = {axis.axisTag: axis.defaultValue for axis in font["fvar"].axes}
    made = BytesIO()
    instantiateVariableFont(font, axes | {"wght": weight}).save(made)
    return made.getvalue()


def draw(html: str) -> bytes:
    """The PDF, tagged for assistive technology."""
    try:
        document = HTML(string=html, base_url=BASE, url_fetcher=StaticFiles())
        return bytes(document.write_pdf(pdf_tags=True))
    except (Exception, FatalURLFetchingError) as error:  # the second is no Exception
        raise NotDrawn(f"{type(error).__name__}: {error}") from None
