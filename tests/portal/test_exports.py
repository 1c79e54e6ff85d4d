"""Tests of exported files: values are exact and never become formulas."""

import csv
import io
import json
import re
from datetime import date
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from django.db import connection
from django.http import StreamingHttpResponse
from django.test import Client as Browser
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext

from portal.audit.models import Entry
from portal.borrowers.list_page import BORROWERS
from portal.credit_lines.list_page import LINES
from portal.loans.list_page import LOANS
from portal.records.models import Account, Borrower
from portal.tables.pages import ListPage
from portal.ui.exports import amount, csv_file, list_file, without_formulas, xlsx_file
from servicing.figures import FOREVER
from servicing.sandbox import Sandbox
from tests.portal.documents.test_document import document_addresses
from tests.portal.spreadsheets import cells_of, frozen_rows

# On PostgreSQL every export reads in a transaction, so all tests need the database.
pytestmark = pytest.mark.django_db
LISTS = {
    "borrowers": "/borrowers/export/",
    "loans": "/loans/export.csv",
    "credit_lines": "/lines/export.csv",
    "applications": "/applications/export/",
    "repayments": "/repayments/export.csv",
    "messaging": "/messages/export/",
}


def text_of(answer: StreamingHttpResponse) -> str:
    return b"".join(answer).decode()


def csv_cell(value: Any) -> str:
    """Write a value to a CSV file and read it back."""
    content = text_of(csv_file("list", ["Value"], [[value]])).removeprefix("\ufeff")
    return list(csv.reader(io.StringIO(content, newline="")))[1][0]


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", " =1", "\tx", "\rx", "\nx", "＝1", "－1"])
def test_text_that_could_be_a_formula_is_escaped(text: str) -> None:
    assert csv_cell(text) == f"'{text}"


@pytest.mark.parametrize("separator", [",", ";", "|", "\t", "\n", "\r\n"])
@pytest.mark.parametrize("formula", ["=1+1", "+1", "-1", "@SUM(A1)", "＝1", " =1"])
def test_a_formula_after_a_separator_is_escaped(separator: str, formula: str) -> None:
    assert csv_cell(f"Acme{separator}{formula}") == f"Acme{separator}'{formula}"


@pytest.mark.parametrize("separator", [",", ";", "|"])
def test_json_cells_stay_valid_with_formulas_escaped(separator: str) -> None:
    shown = csv_cell(msgspec.Raw(f'{{"note":"x{separator}=1+1","all":[1,-5, -6]}}'.encode()))
    assert json.loads(shown) == {"note": f"x{separator}'=1+1", "all": [1, -5, -6]}


def test_every_cell_is_quoted() -> None:
    lines = text_of(csv_file("list", ["Name", "Amount"], [["a", Decimal(1)], [None, ""]]))
    assert lines == '\ufeff"Name","Amount"\r\n"a","1"\r\n"",""\r\n'


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
def test_other_values_are_unchanged(value: Any, text: str) -> None:
    assert csv_cell(value) == text


def test_a_csv_file_has_a_name_and_a_byte_order_mark() -> None:
    answer = csv_file("applications", ["Größe"], [])
    assert answer["Content-Disposition"].startswith('attachment; filename="applications-20')
    assert answer["Cache-Control"] == "no-store"
    assert text_of(answer) == '\ufeff"Größe"\r\n'


def test_json_lines_have_one_exact_object_per_row() -> None:
    request = RequestFactory().get("/", {"format": "jsonl"})
    rows = [["=1+1", Decimal("1.10"), date(2026, 12, 1)], [None, Decimal("-0.10"), True]]
    answer = list_file(request, "loans", ["Name", "Amount", "Due"], rows)
    assert answer["Content-Disposition"].endswith('.jsonl"')
    assert text_of(answer).splitlines() == [
        '{"Name":"=1+1","Amount":1.10,"Due":"2026-12-01"}',
        '{"Name":null,"Amount":-0.10,"Due":true}',
    ]


def test_a_list_is_exported_as_csv_by_default() -> None:
    request = RequestFactory().get("/")
    assert text_of(list_file(request, "loans", ["Name"], [["x"]])) == '\ufeff"Name"\r\n"x"\r\n'


@pytest.mark.slow
@pytest.mark.parametrize("area", LISTS)
@pytest.mark.postgres
def test_csv_and_json_lines_match_and_are_audited(
    portal_service: Sandbox, viewer: Browser, area: str
) -> None:
    document_addresses(portal_service)
    portal_service.world.message("payment.failed", {"status": "FAILED", "note": "=1+1"})
    address = LISTS[area]
    file = viewer.get(f"{address}?all=1").getvalue().decode("utf-8-sig")
    table = list(csv.DictReader(io.StringIO(file, newline="")))
    lines = viewer.get(f"{address}?all=1&format=jsonl").getvalue().decode().splitlines()
    objects = [json.loads(line, parse_float=Decimal) for line in lines]
    assert table
    assert [one.keys() for one in table] == [one.keys() for one in objects[-len(table) :]]
    assert table == [csv_row(one) for one in objects[-len(table) :]]
    detail = Entry.objects.filter(action=f"{area}.export").latest("id").detail
    assert (detail["rows"], "filters" in detail) == (len(objects), True)


@pytest.mark.parametrize("list_page", [BORROWERS, LOANS, LINES], ids=lambda page: page.area)
@pytest.mark.postgres
def test_the_number_of_queries_does_not_grow_with_rows(viewer: Browser, list_page: ListPage) -> None:
    """All optional columns are shown."""
    if list_page.optional_columns:
        viewer.post(list_page.url, {"column": [column.name for column in list_page.optional_columns]})

    def queries_with(records: int) -> int:
        for number in range(records):
            uuid = f"{records}-{number}"
            if list_page is BORROWERS:
                Borrower.objects.create(uuid=uuid, is_past_due=True)
            else:
                Account.objects.create(
                    kind=list_page.kinds[0], uuid=uuid, borrower_uuid="b-1", is_past_due=True,
                    figures_good_through=FOREVER,
                )  # fmt: skip
        with CaptureQueriesContext(connection) as queries:
            rows = viewer.get(f"{list_page.export_url}?all=1").getvalue().count(b"\r\n")
        assert rows > records
        return len(queries)

    queries_with(1)
    assert queries_with(2) == queries_with(5)


def csv_row(line: dict[str, Any]) -> dict[str, str]:
    """Return a JSON object as the cells of a CSV row."""
    return {
        name: json.dumps(value, separators=(",", ":")) if isinstance(value, dict) else without_formulas(value)
        for name, value in line.items()
    }


class TestSpreadsheet:
    def cells(self, *values: Any) -> list[Any]:
        heads = [f"Column {number}" for number, _ in enumerate(values)]
        file = b"".join(xlsx_file("list", heads, [values]))  # type: ignore[arg-type]
        assert frozen_rows(file) == "1"
        head, row = cells_of(file)
        assert head == heads
        return row

    def test_numbers_and_dates_keep_their_type(self) -> None:
        row = self.cells(Decimal("19756.20"), date(2026, 11, 30), 43, True, "Northwind")
        assert row == [Decimal("19756.2"), date(2026, 11, 30), Decimal(43), "Yes", "Northwind"]

    @pytest.mark.parametrize(
        "text", ["=1+1", "+1", "@SUM(A1)", "https://lender.example", "\x00\x08", "01234"]
    )
    def test_text_stays_text(self, text: str) -> None:
        cell = self.cells("first", text)[1]
        # Control characters are escaped in the file.
        assert re.sub("_x([0-9A-F]{4})_", lambda code: chr(int(code[1], 16)), cell) == text

    def test_values_a_spreadsheet_cannot_hold_exactly_become_text(self) -> None:
        row = self.cells(Decimal("1234567890123456.78"), date(1850, 1, 2), None, "x")
        assert row == ["1234567890123456.78", "1850-01-02", None, "x"]

    def test_an_empty_list_has_a_header_row(self) -> None:
        file = b"".join(xlsx_file("list", ["One", "Two"], []))  # type: ignore[arg-type]
        assert cells_of(file) == [["One", "Two"]]

    def test_extra_rows_continue_on_another_sheet(self) -> None:
        file = b"".join(xlsx_file("list", ["One"], [[1], [2], [3]], rows_per_sheet=2))  # type: ignore[arg-type]
        assert cells_of(file) == [["One"], [1], [2]]
        assert cells_of(file, sheet=2) == [["One"], [3]]

    @pytest.mark.parametrize("area", LISTS)
    @pytest.mark.postgres
    def test_every_list_can_be_exported_as_a_spreadsheet(self, auditor: Browser, area: str) -> None:
        answer = auditor.get(f"{LISTS[area]}?format=xlsx")
        assert answer["Content-Disposition"].endswith('.xlsx"')
        assert cells_of(answer.getvalue())


@pytest.mark.parametrize(
    ("sent", "written"),
    [("8500.0000", "8500.00"), ("0.1", "0.10"), ("100.1250", "100.125"), ("7", "7.00"), ("1E+3", "1000.00")],
)
def test_amounts_have_at_least_two_decimals(sent: str, written: str) -> None:
    assert f"{amount(Decimal(sent))}" == written
