"""Downloads of lists: CSV and XLSX that spreadsheets open without running formulas, or JSON Lines for programs.

Hides streaming, the byte-order mark that tells spreadsheets the encoding, and the escaping of formulas.
"""

import csv
import io
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Context, Decimal
from itertools import chain, islice
from typing import Any

import msgspec
from django.http import HttpRequest, StreamingHttpResponse
from django.utils import timezone

from portal.core.business_date import business_date

# Characters that start a formula in a spreadsheet, full-width forms included: at the beginning of a value, and after
# any character at which a spreadsheet may split cells.
_FORMULA_START = re.compile(r"(?:^|(?<=[\t\r\n,;|]))(?=[^\S\t\r\n]*[=+\-@＝＋－＠])|^(?=[\t\r\n])")
# In JSON, a minus after a comma or a space begins a number.
_FORMULA_IN_JSON = re.compile(r"([,;|]\s*)(?=[=+@＝＋－＠])|([;|]\s*)(?=-)")
CENT = Decimal("0.01")
XLSX_FORMATS: Mapping[type, str] = {
    Decimal: "#,##0.00######",
    date: "mmm d, yyyy",
    datetime: "mmm d, yyyy h:mm AM/PM",
}
XLSX_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
PIECE_ROWS = 100
"""How many rows are sent together."""
XLSX_WIDTH = 18
XLSX_PIECE_BYTES = 64 * 1024
# The limits of a spreadsheet: rows below the header, digits of a number, characters of a text, and the first date.
MAX_XLSX_ROWS, XLSX_DIGITS, MAX_XLSX_TEXT, XLSX_FIRST_YEAR = 1_048_575, 15, 32_767, 1901
XLSX_LARGEST = 10**15
WIDE = Context(prec=60)
_JSON = msgspec.json.Encoder(decimal_format="number", enc_hook=str)


def list_file(
    request: HttpRequest, name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]
) -> StreamingHttpResponse:
    """Export as CSV, or as JSON Lines or a spreadsheet if ``format`` in the query string says so."""
    export = {"jsonl": json_file, "xlsx": xlsx_file}.get(request.GET.get("format", ""), csv_file)
    return export(name, columns, rows)


def format_name(request: HttpRequest) -> str:
    return {"jsonl": "JSON Lines", "xlsx": "Excel"}.get(request.GET.get("format", ""), "CSV")


def csv_file(name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> StreamingHttpResponse:
    """Export as CSV. Numbers and dates are exact; missing values are empty."""
    return _download(
        f"{name}-{business_date()}.csv", "text/csv; charset=utf-8", map(str.encode, _csv_lines(columns, rows))
    )


def json_file(name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> StreamingHttpResponse:
    """Export one JSON object per line, with the column titles as keys and exact numbers."""
    remaining = iter(rows)
    lines = iter(lambda: [dict(zip(columns, row, strict=True)) for row in islice(remaining, PIECE_ROWS)], [])
    objects = map(_JSON.encode_lines, lines)
    return _download(f"{name}-{business_date()}.jsonl", "application/jsonl", objects)


def xlsx_file(
    name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], *, rows_per_sheet: int = MAX_XLSX_ROWS
) -> StreamingHttpResponse:
    """Export as a spreadsheet with real numbers and dates and a frozen header; a full sheet is followed by another."""
    pieces = _xlsx_pieces([("", columns, rows)], rows_per_sheet)
    return _download(f"{name}-{business_date()}.xlsx", XLSX_TYPE, pieces)


def tables_file(
    name: str, tables: Sequence[tuple[str, Sequence[str], Iterable[Sequence[Any]]]]
) -> StreamingHttpResponse:
    """Export several tables as a spreadsheet, each with its title, columns and rows as a sheet."""
    return _download(f"{name}.xlsx", XLSX_TYPE, _xlsx_pieces(tables, MAX_XLSX_ROWS))


def _xlsx_pieces(
    tables: Sequence[tuple[str, Sequence[str], Iterable[Sequence[Any]]]], rows_per_sheet: int
) -> Iterator[bytes]:
    """Stream the spreadsheet from a temporary file, because it is complete only once its last row is written."""
    import xlsxwriter  # Few need it, and loading it takes a twentieth of each start.

    with tempfile.TemporaryFile() as file:
        options = {"constant_memory": True, "strings_to_formulas": False, "strings_to_urls": False}
        book = xlsxwriter.Workbook(file, options)
        forms = {kind: book.add_format({"num_format": form}) for kind, form in XLSX_FORMATS.items()}
        head = book.add_format({"bold": True})
        for title, columns, rows in tables:
            remaining = iter(rows)
            first = next(remaining, None)
            while True:
                sheet = book.add_worksheet(title or None)
                sheet.freeze_panes(1, 0)
                sheet.set_column(0, max(len(columns) - 1, 0), XLSX_WIDTH)
                sheet.write_row(0, 0, columns, head)
                page = islice(chain([first], remaining), rows_per_sheet) if first is not None else ()
                for number, row in enumerate(page, 1):
                    for place, value in enumerate(row):
                        _write_cell(sheet, number, place, value, forms)
                first = next(remaining, None)
                if first is None:
                    break
        book.close()
        file.seek(0)
        yield from iter(lambda: file.read(XLSX_PIECE_BYTES), b"")


def _write_cell(sheet: Any, row: int, column: int, value: Any, forms: Mapping[type, Any]) -> None:
    """Write a number or a date as such if a spreadsheet can hold it exactly, anything else as text."""
    match value:
        case None | "":
            return
        case bool():
            sheet.write_string(row, column, "Yes" if value else "No")
        case Decimal() if (
            len(value.normalize().as_tuple().digits) <= XLSX_DIGITS and abs(value) < XLSX_LARGEST
        ):
            sheet.write_number(row, column, value, forms[Decimal])
        case int() if abs(value) < XLSX_LARGEST:
            sheet.write_number(row, column, value)
        case datetime():
            local = timezone.localtime(value).replace(tzinfo=None)
            sheet.write_datetime(row, column, local, forms[datetime])
        case date() if value.year >= XLSX_FIRST_YEAR:
            sheet.write_datetime(row, column, value, forms[date])
        case _:
            words = bytes(value).decode() if isinstance(value, msgspec.Raw) else _plain_text(value)
            sheet.write_string(row, column, words[:MAX_XLSX_TEXT])


def _plain_text(value: Any) -> str:
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def amount(value: Decimal | None) -> Decimal | None:
    """An amount with at least two decimals."""
    if value is None or value != value.quantize(CENT, context=WIDE):
        return value and Decimal(f"{value:f}".rstrip("0"))
    return value.quantize(CENT, context=WIDE)


def without_formulas(value: Any) -> str:
    """A value as text that no spreadsheet takes for a formula; numbers keep every digit."""
    match value:
        case str():
            return _FORMULA_START.sub("'", value)
        case None:
            return ""
        case msgspec.Raw():
            return _FORMULA_IN_JSON.sub(r"\g<0>'", bytes(value).decode())
        case bool():
            return "Yes" if value else "No"
        case Decimal():
            return f"{value:f}"
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
    return str(value)


def _csv_lines(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    yield "\ufeff"
    yield _csv_text([columns])
    remaining = iter(rows)
    while part := [[without_formulas(value) for value in row] for row in islice(remaining, PIECE_ROWS)]:
        yield _csv_text(part)


def _csv_text(rows: Iterable[Sequence[str]]) -> str:
    file = io.StringIO(newline="")
    csv.writer(file, quoting=csv.QUOTE_ALL).writerows(rows)
    return file.getvalue()


def _download(name: str, content_type: str, lines: Iterable[str | bytes]) -> StreamingHttpResponse:
    headers = file_headers(name)
    return StreamingHttpResponse(lines, content_type=content_type, headers=headers)


def file_headers(name: str, disposition: str = "attachment") -> dict[str, str]:
    """The headers of a file that no cache may store; its name is reduced to letters, digits and dashes."""
    return {"Content-Disposition": f'{disposition}; filename="{name}"', "Cache-Control": "no-store"}
