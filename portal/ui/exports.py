"""Lists as files: CSV that a spreadsheet opens right and that cannot run anything in it, or JSON Lines for programs.

Hides streaming, the byte-order mark that tells spreadsheets the encoding, and the guard against formulas.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from datetime import datetime
from decimal import Decimal
from typing import Any

import msgspec
from django.db import connection, transaction
from django.http import HttpRequest, StreamingHttpResponse
from django.utils import timezone

# What makes a spreadsheet take a text for a formula, the wide forms included: at the beginning, and behind whatever
# separates cells where a spreadsheet splits the file in another way than by commas.
_FORMULA = re.compile(r"(^|[\t\r\n,;|])(?=[^\S\t\r\n]*[=+\-@＝＋－＠])|^(?=[\t\r\n])")
# JSON of the service stays JSON: a minus behind a comma or a blank is a number there.
_FORMULA_IN_JSON = re.compile(r"([,;|]\s*)(?=[=+@＝＋－＠])|([;|]\s*)(?=-)")
_JSON = msgspec.json.Encoder(decimal_format="number", enc_hook=str)


class _Line:
    """A file that gives back what is written to it."""

    def write(self, text: str) -> str:
        return text


def list_file(
    request: HttpRequest, name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]
) -> StreamingHttpResponse:
    """The file that the query string asks for: CSV, or with ``format=jsonl`` JSON Lines."""
    form = json_file if request.GET.get("format") == "jsonl" else csv_file
    return form(name, columns, rows)


def csv_file(name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> StreamingHttpResponse:
    """A file called after its content and the day; numbers and days in it are exact, what is missing stays empty."""
    return _download(f"{name}-{timezone.localdate()}.csv", "text/csv; charset=utf-8", _lines(columns, rows))


def json_file(name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> StreamingHttpResponse:
    """One object a line under the heads of the columns: texts as they are, numbers with every digit, JSON in JSON."""
    objects = (_JSON.encode(dict(zip(columns, row, strict=True))) + b"\n" for row in rows)
    return _download(f"{name}-{timezone.localdate()}.jsonl", "application/jsonl", objects)


def guarded(value: Any) -> str:
    """A value as a text that no spreadsheet takes for a formula; numbers are written out with every digit."""
    match value:
        case msgspec.Raw():
            return _FORMULA_IN_JSON.sub(r"\g<0>'", bytes(value).decode())
        case None:
            return ""
        case bool():
            return "Yes" if value else "No"
        case Decimal():
            return f"{value:f}"
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case str():
            return _FORMULA.sub(r"\1'", value)
    return str(value)


def _lines(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    write = csv.writer(_Line(), quoting=csv.QUOTE_ALL).writerow
    yield "\ufeff"
    yield write(columns)
    for row in rows:
        yield write([guarded(value) for value in row])


def _read_as_one(lines: Iterable[str | bytes]) -> Iterator[str | bytes]:
    """The lines, read in one transaction on PostgreSQL: outside one it keeps all rows aside before it gives the first.

    SQLite gives them one by one anyway, and a transaction would keep everybody from writing.
    """
    with transaction.atomic() if connection.vendor == "postgresql" else nullcontext():
        yield from lines


def _download(name: str, content_type: str, lines: Iterable[str | bytes]) -> StreamingHttpResponse:
    answer = StreamingHttpResponse(_read_as_one(lines), content_type=content_type)
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    answer["Cache-Control"] = "no-store"
    return answer
