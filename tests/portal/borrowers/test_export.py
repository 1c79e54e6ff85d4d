"""Exporting the list of borrowers as CSV: its columns, rows, file name and audit entry."""

import csv
import io
from datetime import timedelta

import pytest
from django.test import Client as Browser
from django.utils import timezone

from portal.audit.models import Entry
from portal.records.models import Borrower
from servicing.sandbox import Sandbox
from tests import given
from tests.portal.pages import panel


def export_rows(browser: Browser, query: str = "") -> list[list[str]]:
    """Return the rows of the file, header first."""
    answer = browser.get(f"/borrowers/export/{query}")
    assert answer.status_code == 200
    return list(csv.reader(io.StringIO(answer.getvalue().decode("utf-8-sig"))))


def test_export_has_the_chosen_columns(viewer: Browser, portal_service: Sandbox) -> None:
    borrower = given.borrower(portal_service, first_name="Acme LLC", phone="5125550143")
    viewer.post("/borrowers/", {"column": ["phone", "lines"]})
    assert export_rows(viewer) == [
        ["Name", "Phone", "Lines", "ID"],
        ["Acme LLC", "5125550143", "0", borrower.uuid],
    ]


def test_export_has_one_page_or_all_matches(viewer: Browser) -> None:
    for number in range(30):
        Borrower.objects.create(uuid=f"b-{number}", name=f"B{number:02}", state="TX")
    Borrower.objects.create(uuid="other", name="Elsewhere", state="CO")
    assert [row[0] for row in export_rows(viewer, "?state=TX&sort=name&page=2")[1:]] == [
        f"B{n}" for n in range(25, 30)
    ]
    assert [row[0] for row in export_rows(viewer, "?state=TX&sort=name&all=1")[1:]] == [
        f"B{n:02}" for n in range(30)
    ]


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t"])
def test_formulas_are_escaped(viewer: Browser, start: str) -> None:
    Borrower.objects.create(uuid="b-1", name=f"{start}1+1")
    assert export_rows(viewer)[1][0] == f"'{start}1+1"


def test_file_name_lists_the_filters(viewer: Browser) -> None:
    answer = viewer.get("/borrowers/export/?state=TX&q=acme&all=1")
    name = f"borrowers-text-acme-state-texas-{timezone.localdate()}.csv"
    assert answer["Content-Disposition"] == f'attachment; filename="{name}"'


def test_export_is_recorded_with_filters_and_row_count(viewer: Browser, portal_service: Sandbox) -> None:
    given.borrower(portal_service)
    export_rows(viewer, "?q=llc&state=OR&all=1")
    entry = Entry.objects.get(action="borrowers.export")
    assert entry.detail == {"query": "llc", "filters": {"state": "OR"}, "rows": 1}
    assert entry.subject_label == "all that match"


def test_post_is_not_allowed(viewer: Browser) -> None:
    assert viewer.post("/borrowers/export/").status_code == 405


def test_a_searched_ssn_is_hidden_in_the_audit_trail(viewer: Browser) -> None:
    viewer.get("/borrowers/export/?q=219-09-9999+acme")
    entry = Entry.objects.get(action="borrowers.export")
    assert entry.detail["query"] == "[hidden] acme"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("opened", "reported"),
    [((45, 100), ()), ((100, 45), ()), ((), (12, 70)), ((), (70, 12)), ((45,), (70,)), ((100,), (12,))],
)
def test_days_past_due_are_those_of_the_account_that_is_past_due_longest(
    viewer: Browser, portal_service: Sandbox, opened: tuple[int, ...], reported: tuple[int, ...]
) -> None:
    borrower, today = given.borrower(portal_service), timezone.localdate()
    terms = {"amount": "1200.00", "interest_rate": "0"}
    loans = [
        given.loan(portal_service, borrower, opened=today - timedelta(days=days), **terms) for days in opened
    ]
    lines = [
        given.line(portal_service, borrower, past_due_balance="55.50", days_past_due=days)
        for days in reported
    ]
    for account in (*loans, *lines):
        panel(viewer, account.get_absolute_url(), account.kind)
    each: list[int] = []
    for address in ("/loans/export.csv", "/lines/export.csv"):
        text = viewer.get(f"{address}?all=1").getvalue().decode("utf-8-sig")
        each += [int(row["Days past due"]) for row in csv.DictReader(io.StringIO(text))]
    assert len(set(each)) == len(each) == len(opened) + len(reported)
    viewer.post("/borrowers/", {"column": ["days"]})
    assert [row[1] for row in export_rows(viewer)] == ["Days past due", str(max(each))]
