"""What leaves as a file is exact, readable by a spreadsheet or a program, and never a formula."""

import csv
import io
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from django.http import StreamingHttpResponse
from django.test import RequestFactory

from portal.ui.exports import csv_file, list_file


def text_of(answer: StreamingHttpResponse) -> str:
    return b"".join(answer).decode()


def cell(value: Any) -> str:
    """One value after its way through a file and a reader of it."""
    content = text_of(csv_file("list", ["Value"], [[value]])).removeprefix("\ufeff")
    return list(csv.reader(io.StringIO(content, newline="")))[1][0]


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1", "－1"])
def test_a_text_that_could_be_a_formula_is_guarded(text: str) -> None:
    assert cell(text) == f"'{text}"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Decimal("-5000.00"), "-5000.00"),
        (Decimal("1E+3"), "1000"),
        (-7, "-7"),
        (date(2026, 12, 1), "2026-12-01"),
        (True, "Yes"),
        (None, ""),
        ('O\'Neil, "Sons"\nLLC', 'O\'Neil, "Sons"\nLLC'),
        ("a = b", "a = b"),
    ],
)
def test_other_values_stay_what_they_are(value: Any, text: str) -> None:
    assert cell(value) == text


def test_a_file_names_its_content_and_tells_its_encoding() -> None:
    answer = csv_file("applications", ["Größe"], [])
    assert answer["Content-Disposition"].startswith('attachment; filename="applications-20')
    assert answer["Cache-Control"] == "no-store"
    assert text_of(answer) == "\ufeffGröße\r\n"


def test_json_lines_have_one_exact_object_a_row() -> None:
    request = RequestFactory().get("/", {"format": "jsonl"})
    rows = [["=1+1", Decimal("1.10"), date(2026, 12, 1)], [None, Decimal("-0.10"), True]]
    answer = list_file(request, "loans", ["Name", "Amount", "Due"], rows)
    assert answer["Content-Disposition"].endswith('.jsonl"')
    assert text_of(answer).splitlines() == [
        '{"Name":"=1+1","Amount":1.10,"Due":"2026-12-01"}',
        '{"Name":null,"Amount":-0.10,"Due":true}',
    ]


def test_a_list_is_csv_unless_json_lines_are_asked_for() -> None:
    request = RequestFactory().get("/")
    assert text_of(list_file(request, "loans", ["Name"], [["x"]])) == "\ufeffName\r\nx\r\n"
