"""Tests that an error inside a successful answer changes nothing on file and is shown as a failure."""

import re
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client as Browser

from portal.records.models import Account, Answer, Kind, Repayment
from servicing.sandbox import Sandbox
from tests import given
from tests.portal.pages import allow_refresh, page, panel, visible_text

# Other threads call the service
pytestmark = [pytest.mark.postgres, pytest.mark.slow, pytest.mark.django_db(transaction=True)]

STATEMENT, REPAYMENTS = "credit_lines.statement", "repayments.of_line"
PANELS = ("line", "line-repayments")
ERRORS: list[Any] = [
    {"error_code": "E1042", "error_message": "Backend timeout"},
    {"data": [], "error": "Backend timeout"},
    {"success": False, "message": "Backend timeout"},
    [{"error": "Backend timeout"}],
    '"Backend timeout"',
]


@pytest.fixture
def line(portal_service: Sandbox, viewer: Browser) -> Account:
    """A line that is past due, with repayments, as read a while ago."""
    owner = given.borrower(portal_service)
    line = given.line(portal_service, owner)
    past_due = {"past_due_balance": Decimal("7502.71"), "days_past_due": 94}
    portal_service.fail_next(STATEMENT, changes=past_due)
    row = {"uuid": "r-1", "amount": Decimal("310.25"), "status": "SCHEDULED", "effective_date": "2026-12-01"}
    portal_service.fail_next(REPAYMENTS, body=[row])
    panel(viewer, line.get_absolute_url(), "line")
    return line


@pytest.mark.parametrize("body", ERRORS)
def test_an_error_changes_no_copy_and_is_shown(
    viewer: Browser, portal_service: Sandbox, line: Account, body: Any
) -> None:
    kinds = [Kind.LINE, Kind.LINE_REPAYMENTS]
    copies = {one.pk: (one.body, one.last_at) for one in Answer.objects.filter(kind__in=kinds)}
    assert len(copies) == 2
    allow_refresh(line)
    for operation in (STATEMENT, REPAYMENTS):
        portal_service.fail_next(operation, body=body)
    for name in PANELS:
        shown = visible_text(panel(viewer, line.get_absolute_url(), name))
        assert re.search(r"(Failing|Request rejected) since [^.]*[.:].*Backend timeout", shown)
    assert {one.pk: (one.body, one.last_at) for one in Answer.objects.filter(kind__in=kinds)} == copies
    line.refresh_from_db()
    assert (line.past_due, line.answer.failure.endswith("Backend timeout")) == (Decimal("7502.71"), True)
    assert "$7,502.71" in visible_text(page(viewer, "/collections/"))


def test_an_incomplete_list_keeps_what_was_known_and_says_so(
    viewer: Browser, portal_service: Sandbox, line: Account
) -> None:
    allow_refresh(line)
    part = {"data": [{"uuid": "r-9", "amount": 5, "status": "SUCCEEDED"}], "pagination": {"total": 7}}
    portal_service.fail_next(REPAYMENTS, body=part, times=None)
    panel(viewer, line.get_absolute_url(), "line")
    shown = visible_text(panel(viewer, line.get_absolute_url(), "line-repayments"))
    assert "The list is incomplete: the service returned 1 of 7 records." in shown
    assert "$310.25" in shown
    assert not Repayment.objects.filter(uuid="r-9").exists()


def test_pages_of_repayments_become_one_copy(viewer: Browser, portal_service: Sandbox, line: Account) -> None:
    allow_refresh(line)
    for first in (1, 4, 7):
        rows = [
            {"uuid": f"p-{n}", "amount": n, "status": "SUCCEEDED"} for n in range(first, min(first + 3, 8))
        ]
        portal_service.fail_next(REPAYMENTS, body={"data": rows, "pagination": {"total": 7}})
    panel(viewer, line.get_absolute_url(), "line")
    said = Answer.objects.get(kind=Kind.LINE_REPAYMENTS)
    assert (said.body.count('"uuid"'), said.failing_since) == (7, None)
    assert Repayment.objects.filter(uuid__startswith="p-").count() == 7
