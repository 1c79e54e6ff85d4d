"""Where a PDF puts its glyphs."""

import io
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from pypdf import PageObject, PdfReader, Transformation
from pypdf.generic import ContentStream, DictionaryObject, StreamObject

Box = tuple[float, float, float, float]
# Parts of the font size above and below the baseline.
ASCENT, DESCENT = 0.75, 0.22
# Taller letters are those of the watermark, which lies below everything.
WATERMARK_POINTS = 30


def glyphs_outside(pdf: bytes, *, margin: float = 0) -> list[tuple[int, float, float]]:
    """Page number and position of every glyph that isn't whole inside its page, less ``margin`` points."""
    outside = []
    for number, page in enumerate(PdfReader(io.BytesIO(pdf)).pages, 1):
        left, bottom, right, top = map(float, page.mediabox)
        for x0, y0, x1, y1 in glyph_boxes(page):
            if x0 < left + margin or x1 > right - margin or y0 < bottom + margin or y1 > top - margin:
                outside.append((number, round(x0, 1), round(y0, 1)))
    return outside


def glyph_boxes(page: PageObject) -> Iterator[Box]:
    """The box of every glyph of a page in points."""
    for _, box in _glyphs(page):
        yield box


def rows_that_touch(pdf: bytes, *, gap: float, cells: int) -> list[tuple[int, float, float]]:
    """Page number and position of texts in rows of at least ``cells`` texts that follow another one too closely."""
    found = []
    for number, page in enumerate(PdfReader(io.BytesIO(pdf)).pages, 1):
        texts: dict[object, list[Box]] = defaultdict(list)
        for text, box in _glyphs(page):
            texts[text].append(box)
        rows: dict[float, list[tuple[float, float]]] = defaultdict(list)
        for boxes in texts.values():
            if boxes[0][3] - boxes[0][1] > WATERMARK_POINTS:
                continue
            row = rows[round(boxes[0][1])]
            row.append((min(box[0] for box in boxes), max(box[2] for box in boxes)))
        for bottom, spans in rows.items():
            ordered = sorted(spans)
            if len(spans) >= cells:
                pairs = pairwise(ordered)
                found += [(number, round(b[0], 1), bottom) for a, b in pairs if b[0] - a[1] < gap]
    return found


def _glyphs(page: PageObject) -> Iterator[tuple[object, Box]]:
    """Every glyph's text, which is different for each cell, and its box."""
    contents = page.get_contents()
    assert contents is not None
    yield from _boxes(contents, page["/Resources"], page.pdf, Transformation())  # type: ignore[arg-type]


def _boxes(
    stream: StreamObject, resources: DictionaryObject, pdf: PdfReader, start: Transformation
) -> Iterator[tuple[object, Box]]:
    current, stack, text = start, [], Transformation()
    widths: dict[int, float] = {}
    size, cell = 0.0, object()
    for operands, operator in ContentStream(stream, pdf).operations:
        match operator:
            case b"q":
                stack.append(current)
            case b"Q":
                current = stack.pop() if stack else start
            case b"cm":
                current = Transformation(_matrix(operands)).transform(current)
            case b"Tm":
                text, cell = Transformation(_matrix(operands)), object()
            case b"Tf":
                size, widths = float(operands[1]), _widths(resources["/Font"][operands[0]])  # type: ignore[index]
            case b"TJ":
                at = 0.0
                for item in operands[0]:
                    if not hasattr(item, "original_bytes"):
                        at -= float(item) / 1000 * size
                        continue
                    codes = item.original_bytes
                    for code in (int.from_bytes(codes[i : i + 2]) for i in range(0, len(codes), 2)):
                        width = widths[code] / 1000 * size
                        yield cell, _box(text.transform(current), at, width, size)
                        at += width
            case b"Do":
                form: Any = resources["/XObject"][operands[0]]  # type: ignore[index]
                if form.get("/Subtype") == "/Form":
                    inner = Transformation(_matrix(form.get("/Matrix", (1, 0, 0, 1, 0, 0))))
                    yield from _boxes(form, form["/Resources"], pdf, inner.transform(current))


def _matrix(values: Any) -> tuple[float, float, float, float, float, float]:
    a, b, c, d, e, f = map(float, values)
    return a, b, c, d, e, f


def _box(matrix: Transformation, at: float, width: float, size: float) -> Box:
    corners = [matrix.apply_on((x, y)) for x in (at, at + width) for y in (-DESCENT * size, ASCENT * size)]
    across, up = zip(*corners, strict=True)
    return min(across), min(up), max(across), max(up)


def _widths(font: Any) -> dict[int, float]:
    entries = list(font["/DescendantFonts"][0].get_object()["/W"])
    pairs = zip(entries[::2], entries[1::2], strict=True)
    return {int(first) + n: float(width) for first, run in pairs for n, width in enumerate(run)}
