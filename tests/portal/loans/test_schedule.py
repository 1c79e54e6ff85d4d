"""Tests of the CSV export of a loan's schedule."""

import csv
import io

import pytest
from django.test import Client as Browser

from portal.audit.models import Entry
from servicing.sandbox import Sandbox
from tests import given
from tests.portal.pages import panel


def export_schedule(browser: Browser, address: str) -> list[list[str]]:
    answer = browser.get(f"{address}schedule.csv")
    assert answer.status_code == 200
    content = b"".join(answer.streaming_content).decode()  # type: ignore[attr-defined]
    return list(csv.reader(io.StringIO(content.removeprefix("\ufeff"), newline="")))


@pytest.mark.slow
@pytest.mark.parametrize("count", [0, 12, 360])
def test_export_has_a_row_per_installment(viewer: Browser, portal_service: Sandbox, count: int) -> None:
    loan = given.loan(portal_service, given.borrower(portal_service), installments=count)
    panel(viewer, loan.get_absolute_url(), "loan")
    heads, *rows = export_schedule(viewer, loan.get_absolute_url())
    assert len(rows) == count
    assert heads[-2:] == ["Status here", "Copy of"]
    assert count == 0 or heads[:4] == ["No.", "Due", "Principal", "Interest"]


def test_export_escapes_formulas(viewer: Browser, portal_service: Sandbox) -> None:
    loan = given.loan(portal_service, given.borrower(portal_service), installments=0)
    portal_service.world.amend(loan.uuid, installments=[{"Memo": "=1+1"}])
    panel(viewer, loan.get_absolute_url(), "loan")
    assert export_schedule(viewer, loan.get_absolute_url())[1][0] == "'=1+1"


def test_export_of_an_unread_loan_has_no_rows(viewer: Browser, portal_service: Sandbox) -> None:
    loan = given.loan(portal_service, given.borrower(portal_service))
    assert export_schedule(viewer, loan.get_absolute_url()) == [["Status here", "Copy of"]]


def test_export_is_audited(viewer: Browser, portal_service: Sandbox) -> None:
    loan = given.loan(portal_service, given.borrower(portal_service))
    panel(viewer, loan.get_absolute_url(), "loan")
    export_schedule(viewer, loan.get_absolute_url())
    entry = Entry.objects.get(action="loans.schedule")
    assert (entry.subject_uuid, entry.detail) == (loan.uuid, {"rows": 12})
