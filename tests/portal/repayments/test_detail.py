"""One repayment: what was told of it, and its life as far as it is known."""

from datetime import timedelta

import pytest
from django.test import Client as Browser
from django.utils import timezone

from portal.audit.models import Entry
from portal.registry.models import Kind, Record, Snapshot
from servicing.sandbox import Sandbox
from tests import given
from tests.portal.pages import forget, page, panel


@pytest.fixture
def loan(desk: Sandbox) -> Record:
    return given.loan(desk, given.borrower(desk, first_name="Northwind Baking Co LLC"))


def told(browser: Browser, loan: Record, uuid: str) -> str:
    """The page of a repayment after its list was read."""
    panel(browser, loan.get_absolute_url(), "loan-repayments")
    return page(browser, f"/repayments/{uuid}/")


def test_it_shows_all_fields_and_leads_to_account_and_borrower(
    viewer: Browser, desk: Sandbox, loan: Record
) -> None:
    payment = desk.world.repayment(
        loan.uuid, amount="250.10", ach_id="ach-7", initiation_date="2026-03-08 09:00:00 IST"
    )
    shown = told(viewer, loan, payment["uuid"])
    for words in (
        "$250.10",
        "ach-7",
        "2026-03-08 09:00:00 IST",
        "Northwind Baking Co LLC",
        "Money",
        "Identity",
    ):
        assert words in shown
    assert loan.get_absolute_url() in shown


def test_what_was_not_told_is_a_dash(viewer: Browser, desk: Sandbox, loan: Record) -> None:
    payment = desk.world.repayment(loan.uuid, amount="250.10")
    shown = told(viewer, loan, payment["uuid"])
    assert "$0.00" not in shown
    assert shown.count("Not provided by the service (repayments.of_") >= 8


@pytest.mark.parametrize(
    ("error", "words"),
    [("R01", "The service says: <q>R01</q>"), ("", "The service gives no reason"), (None, "gives no reason")],
)
def test_a_return_says_why(
    viewer: Browser, desk: Sandbox, loan: Record, error: str | None, words: str
) -> None:
    payment = desk.world.repayment(
        loan.uuid, status="FAILED_AFTER_SUCCESS", payment_type="RETURNED", error_description=error
    )
    shown = told(viewer, loan, payment["uuid"])
    assert "Returned after it had succeeded" in shown
    assert words in shown


def test_its_life_is_one_ordered_line_with_its_gaps(viewer: Browser, desk: Sandbox, loan: Record) -> None:
    payment = desk.world.repayment(loan.uuid, status="SCHEDULED", effective_date="2026-03-08")
    told(viewer, loan, payment["uuid"])
    for status in ("SUCCEEDED", "FAILED_AFTER_SUCCESS"):
        desk.world.amend(payment["uuid"], status=status)
        forget(loan)
        shown = told(viewer, loan, payment["uuid"])
    words = ["Effective", "First told here as scheduled", "told as succeeded", "told as returned after"]
    life = shown.partition("Life of this payment")[2]
    assert [life.index(one) for one in words] == sorted(life.index(one) for one in words)
    assert life.count("when exactly was not told") == 2


def test_a_success_that_nobody_saw_is_named(viewer: Browser, desk: Sandbox, loan: Record) -> None:
    payment = desk.world.repayment(loan.uuid, status="FAILED_AFTER_SUCCESS")
    assert "It had succeeded before; when it did was not told here" in told(viewer, loan, payment["uuid"])


def test_its_panel_reads_the_list_it_is_in(viewer: Browser, desk: Sandbox, loan: Record) -> None:
    payment = desk.world.repayment(loan.uuid, status="SCHEDULED")
    told(viewer, loan, payment["uuid"])
    desk.world.amend(payment["uuid"], status="SUCCEEDED")
    shown = panel(viewer, f"/repayments/{payment['uuid']}/?refresh=1", "repayment")
    assert shown.startswith('<div class="sd-stack sd-account" id="repayment"')
    assert "Then told as succeeded" in shown
    assert desk.calls[-1].operation == "repayments.of_loan"


def test_one_of_which_only_the_row_is_known_has_a_page(viewer: Browser) -> None:
    Record.objects.create(kind=Kind.REPAYMENT, uuid="r-1", amount="12.50", status="QUEUED_RETRY")
    shown = page(viewer, "/repayments/r-1/")
    assert "$12.50" in shown
    assert "QUEUED_RETRY" in shown
    assert "Nothing was told of it yet" in shown


def test_an_earlier_answer_of_any_shape_breaks_nothing(viewer: Browser, desk: Sandbox, loan: Record) -> None:
    payment = desk.world.repayment(loan.uuid)
    told(viewer, loan, payment["uuid"])
    Snapshot.objects.create(
        record=Record.objects.get(uuid=payment["uuid"]),
        at=timezone.now() - timedelta(days=3),
        source="service",
        digest="0",
        answer=f'{{"uuid": "{payment["uuid"]}", "status": 7, "completion_date": {{}}, "effective_date": "soon"}}',
    )
    assert "First told here as" in page(viewer, f"/repayments/{payment['uuid']}/")


def test_a_look_is_recorded_and_an_unknown_one_has_no_page(
    viewer: Browser, desk: Sandbox, loan: Record
) -> None:
    payment = desk.world.repayment(loan.uuid)
    told(viewer, loan, payment["uuid"])
    assert Entry.objects.get(action="repayments.detail").subject_uuid == payment["uuid"]
    assert viewer.get("/repayments/nothing/").status_code == 404
