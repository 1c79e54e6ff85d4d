"""Statement documents of a line of credit, drawn as PDF when they are asked for. Hides the drawing."""

import io
from typing import Any

import pydyf


def statement(contents: dict[str, Any], *, borrower: dict[str, Any], line_uuid: str) -> bytes:
    """The PDF of one statement; the same contents give the same bytes."""
    document = pydyf.PDF()
    page = pydyf.Dictionary(
        {"Type": "/Page", "Parent": document.pages.reference, "MediaBox": [0, 0, 612, 792]}
    )
    document.add_page(page)
    out = io.BytesIO()
    document.write(out)
    return out.getvalue()
