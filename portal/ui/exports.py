"""Lists as CSV files that a spreadsheet opens right and that cannot run anything in it.

Hides streaming, the byte-order mark that tells spreadsheets the encoding, and the guard against formulas.
"""

import csv
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any

from django.http import StreamingHttpResponse
from django.utils import timezone

# What makes a spreadsheet take a text for a formula, the wide forms included.
_FORMULA = tuple("=+-@\t\r\n＝＋－＠")


class _Line:
    """A file that gives back what is written to it."""

    def write(self, text: str) -> str:
        return text


def csv_file(name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> StreamingHttpResponse:
    """A file called after its content and the day; numbers and days in it are exact, what is missing stays empty."""
    answer = StreamingHttpResponse(_lines(columns, rows), content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{name}-{timezone.localdate()}.csv"'
    answer["Cache-Control"] = "no-store"
    return answer


def guarded(value: Any) -> str:
    """A value as a text that no spreadsheet takes for a formula; numbers are written out with every digit."""
    match value:
        case None:
            return ""
        case bool():
            return "Yes" if value else "No"
        case Decimal():
            return f"{value:f}"
        case str() if value.startswith(_FORMULA):
            return f"'{value}"
    return str(value)


def _lines(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    write = csv.writer(_Line()).writerow
    yield "\ufeff"
    yield write(columns)
    for row in rows:
        yield write([guarded(value) for value in row])
