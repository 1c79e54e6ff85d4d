"""Statement documents of a line of credit as PDF, created on request. Hides the drawing.

The documents use only standard fonts and no clock, so the same contents give the same bytes.
"""

import io
import textwrap
from datetime import date
from decimal import Decimal
from typing import Any

import pydyf

WIDTH, HEIGHT, MARGIN = 612, 792, 54
RIGHT = WIDTH - MARGIN
ROW = 15
FIRST_TABLE, NEXT_TABLE, LAST_ROW = 396, 690, 84
"""Vertical positions: the top of the table on the first page and on the others, and its last row."""

INK, BLUE, GREY, PALE = (0.13, 0.16, 0.2), (0.1, 0.27, 0.45), (0.42, 0.46, 0.5), (0.94, 0.95, 0.97)
NARROW = {",": 278, ".": 278, " ": 278, "/": 278, "-": 333, "−": 556}
"""Widths of Helvetica characters in amounts, in thousandths; a digit or a dollar sign is 556 wide."""

Contents = dict[str, Any]


def statement(contents: Contents, *, borrower: dict[str, Any], line_uuid: str) -> bytes:
    """The PDF of one statement."""
    document = pydyf.PDF()
    fonts = _fonts(document)
    pages = _split(contents["activity"])
    for number, rows in enumerate(pages, 1):
        page = Page()
        page.head(contents, line_uuid, f"Page {number} of {len(pages)}")
        if number == 1:
            page.addressee(borrower)
            page.summary(contents)
            page.payment(contents)
        page.table(rows, top=FIRST_TABLE if number == 1 else NEXT_TABLE)
        page.add_to(document, fonts)
    title = f"Statement of {contents['billing_date']}"
    document.info.update(Title=pydyf.String(title), Producer=pydyf.String("Lending service sandbox"))
    document.catalog["Lang"] = pydyf.String("en-US")
    out = io.BytesIO()
    document.write(out)
    return out.getvalue()


def _split(rows: list[Contents]) -> list[list[Contents]]:
    """Split the rows into pages; the first page has room for fewer."""
    first, more = ((top - LAST_ROW) // ROW - 1 for top in (FIRST_TABLE, NEXT_TABLE))
    rest = rows[first:]
    return [rows[:first], *(rest[start : start + more] for start in range(0, len(rest), more))]


def _fonts(document: pydyf.PDF) -> pydyf.Dictionary:
    fonts = pydyf.Dictionary()
    for key, name in (("R", "Helvetica"), ("B", "Helvetica-Bold")):
        font = pydyf.Dictionary(
            {
                "Type": "/Font",
                "Subtype": "/Type1",
                "BaseFont": f"/{name}",
                "Encoding": "/WinAnsiEncoding",
            }
        )
        document.add_object(font)
        fonts[key] = font.reference
    return fonts


class Page:
    """One page in US letter size."""

    def __init__(self) -> None:
        self._ink = pydyf.Stream(compress=True)

    def add_to(self, document: pydyf.PDF, fonts: pydyf.Dictionary) -> None:
        """Append the page to the document."""
        document.add_object(self._ink)
        page = {
            "Type": "/Page",
            "Parent": document.pages.reference,
            "MediaBox": pydyf.Array([0, 0, WIDTH, HEIGHT]),
            "Contents": self._ink.reference,
            "Resources": pydyf.Dictionary({"Font": fonts}),
        }
        document.add_page(pydyf.Dictionary(page))

    # Parts of a statement

    def head(self, contents: Contents, line_uuid: str, page: str) -> None:
        """Draw the header and footer: sender, period and line."""
        self._box(0, HEIGHT - 64, WIDTH, 64, BLUE)
        self._text(MARGIN, HEIGHT - 34, "Lending Service", "B", 16, (1, 1, 1))
        self._text(MARGIN, HEIGHT - 51, "Line of credit statement", "R", 10, (1, 1, 1))
        self._figures(RIGHT, HEIGHT - 34, _day(contents["billing_date"]), "B", 11, (1, 1, 1))
        period = f"{_day(contents['period_start'])} - {_day(contents['billing_date'])}"
        self._figures(RIGHT, HEIGHT - 51, period, "R", 9, (1, 1, 1))
        self._text(MARGIN, 40, f"Line {line_uuid}", "R", 8, GREY)
        self._text(RIGHT - 52, 40, page, "R", 8, GREY)
        self._text(
            MARGIN, 28, "This document comes from a demonstration service; no money is owed.", "R", 8, GREY
        )

    def addressee(self, borrower: dict[str, Any]) -> None:
        """Draw the borrower's name and address."""
        place = borrower["address"]
        name = " ".join(
            filter(None, (borrower["first_name"], borrower["middle_name"], borrower["last_name"]))
        )
        lines = [("B", line) for line in textwrap.wrap(name, 48)[:4]]
        lines += [("R", place[line]) for line in ("line_1", "line_2", "line_3") if place.get(line)]
        lines.append(("R", f"{place['city']}, {place['state']} {place['zip']}"))
        for index, (font, line) in enumerate(lines):
            self._text(MARGIN, HEIGHT - 94 - 14 * index, line, font, 10)

    def summary(self, contents: Contents) -> None:
        """Draw the changes from the last balance to this one."""
        charged = [row for row in contents["activity"] if row["note"].startswith("Interest")]
        paid = sum((row["amount"] for row in contents["activity"] if row["amount"] < 0), Decimal(0))
        interest = sum((row["amount"] for row in charged), Decimal(0))
        opening, closing = contents["opening_balance"], contents["closing_balance"]
        self._panel(
            MARGIN,
            "Balance",
            (
                ("Balance on the last statement", opening),
                ("Advances and charges", closing - opening - paid - interest),
                ("Payments", paid),
                (f"Interest at {contents['rate']:.2f}% a year", interest),
                ("Balance on this statement", closing),
            ),
        )

    def payment(self, contents: Contents) -> None:
        """Draw the amount due and its due date."""
        self._panel(
            WIDTH // 2 + 9,
            "Payment",
            (
                ("Amount due", contents["payment_amount_due"]),
                (
                    "Payment due by",
                    _day(contents["payment_due_date"]) if contents["payment_due_date"] else "-",
                ),
                ("Past due, included above", contents["past_due_balance"]),
                ("Credit limit", contents["credit_limit"]),
                ("Available credit", contents["available_credit"]),
            ),
        )

    def table(self, rows: list[Contents], *, top: int) -> None:
        """Draw the activity of the month."""
        columns = ((MARGIN + 6, "Date"), (MARGIN + 84, "Description"), (411, "Amount"), (517, "Balance"))
        for x, title in columns:
            self._text(x, top, title, "B", 9, BLUE)
        self._box(MARGIN, top - 6, RIGHT - MARGIN, 1, BLUE)
        if not rows:
            self._text(MARGIN + 6, top - ROW - 6, "No activity in this period.", "R", 9, GREY)
        for index, row in enumerate(rows, 1):
            y = top - ROW * index - 5
            if index % 2 == 0:
                self._box(MARGIN, y - 4, RIGHT - MARGIN, ROW, PALE)
            self._text(MARGIN + 6, y, _day(row["on"]), "R", 9)
            self._text(MARGIN + 84, y, row["note"], "R", 9)
            self._figures(444, y, _figure(row["amount"]), "R", 9)
            self._figures(RIGHT - 6, y, _figure(row["balance"]), "R", 9)

    # Drawing

    def _panel(self, x: int, title: str, rows: tuple[tuple[str, Decimal | str], ...]) -> None:
        width, top = (RIGHT - MARGIN) // 2 - 9, 590
        self._box(x, top - 142, width, 142, PALE)
        self._text(x + 12, top - 22, title, "B", 11, BLUE)
        for index, (label, value) in enumerate(rows):
            y = top - 44 - 20 * index
            self._text(x + 12, y, label, "R", 9)
            shown = value if isinstance(value, str) else f"${_figure(value)}".replace("$−", "−$")
            self._figures(x + width - 12, y, shown, "B", 9)

    def _box(self, x: int, y: int, width: int, height: int, colour: tuple[float, ...]) -> None:
        self._ink.set_color_rgb(*colour)
        self._ink.rectangle(x, y, width, height)
        self._ink.fill()

    def _figures(
        self, right: int, y: int, figures: str, font: str, size: int, colour: tuple[float, ...] = INK
    ) -> None:
        """Draw an amount aligned to the right."""
        width = sum(NARROW.get(sign, 556) for sign in figures) * size // 1000
        self._text(right - width, y, figures, font, size, colour)

    def _text(self, x: int, y: int, text: str, font: str, size: int, colour: tuple[float, ...] = INK) -> None:
        """Draw a line of text, with a question mark for characters that the standard fonts lack."""
        # The fonts lack the minus sign; an en dash looks the same.
        shown = text.replace("−", "–").encode("cp1252", "replace")
        self._ink.begin_text()
        self._ink.set_font_size(font, size)
        self._ink.set_color_rgb(*colour)
        self._ink.move_text_to(x, y)
        self._ink.stream.append(b"<" + shown.hex().encode() + b"> Tj")
        self._ink.end_text()


def _figure(amount: Decimal) -> str:
    return f"{amount:,.2f}".replace("-", "−")


def _day(text: str) -> str:
    return f"{date.fromisoformat(text):%m/%d/%Y}"
