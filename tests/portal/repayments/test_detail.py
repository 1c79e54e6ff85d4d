"""The page of one repayment: its details and its history."""

from datetime import UTC, datetime

import pytest
from django.core.management import call_command
from django.test import Client as Browser

from portal.audit.models import PageView
from portal.records.models import Account, Kind, Repayment
from servicing.sandbox import Sandbox
from tests import given
from tests.portal.pages import allow_refresh, page, panel, visible_text


@pytest.fixture
def loan(portal_service: Sandbox) -> Account:
    return given.loan(portal_service, given.borrower(portal_service, first_name="Northwind Baking Co LLC"))


def read_detail(browser: Browser, loan: Account, uuid: str) -> str:
    """Return the page of a repayment after the repayments of its loan were read."""
    panel(browser, loan.get_absolute_url(), "loan")
    return page(browser, f"/repayments/{uuid}/")


def test_the_page_shows_all_fields_and_links(viewer: Browser, portal_service: Sandbox, loan: Account) -> None:
    payment = portal_service.world.repayment(
        loan.uuid, amount="250.10", ach_id="ach-7", initiation_date="2026-03-08 09:00:00 IST"
    )
    shown = read_detail(viewer, loan, payment["uuid"])
    for part in (
        "$250.10",
        "ach-7",
        "2026-03-08 09:00:00 IST",
        "Northwind Baking Co LLC",
        "Money",
        "Identity",
    ):
        assert part in shown
    assert loan.get_absolute_url() in shown


def test_missing_fields_are_listed_in_one_line(
    viewer: Browser, portal_service: Sandbox, loan: Account
) -> None:
    payment = portal_service.world.repayment(loan.uuid, amount="250.10", ach_id="ach-7", ach_batch_id=None)
    shown = read_detail(viewer, loan, payment["uuid"])
    details = visible_text(shown.partition("life-title")[0])
    assert "Not provided Principal, interest, fees, suspense, ending balance" in details
    assert "ACH batch" in details
    assert "ACH ID ach-7" in details
    assert "$0.00" not in shown
    assert "—" not in details
    assert "Not provided by the service (repayments.of_" in shown


@pytest.mark.parametrize(
    ("error", "reason"),
    [("R01", "The service says: <q>R01</q>"), ("", "The service gives no reason"), (None, "gives no reason")],
)
def test_a_return_shows_its_reason(
    viewer: Browser, portal_service: Sandbox, loan: Account, error: str | None, reason: str
) -> None:
    payment = portal_service.world.repayment(
        loan.uuid, status="FAILED_AFTER_SUCCESS", payment_type="RETURNED", error_description=error
    )
    shown = read_detail(viewer, loan, payment["uuid"])
    assert "Returned after posting" in shown
    assert ">Returned<" not in shown.partition("Details</h2>")[0]
    assert reason in shown


@pytest.mark.slow
def test_the_history_is_in_order_and_marks_unknown_times(
    viewer: Browser, portal_service: Sandbox, loan: Account
) -> None:
    payment = portal_service.world.repayment(loan.uuid, status="SCHEDULED", effective_date="2026-03-08")
    read_detail(viewer, loan, payment["uuid"])
    for status in ("SUCCEEDED", "FAILED_AFTER_SUCCESS"):
        portal_service.world.amend(payment["uuid"], status=status)
        allow_refresh(loan)
        shown = read_detail(viewer, loan, payment["uuid"])
    steps = ["Effective", "First seen as scheduled", "seen as succeeded", "seen as returned after"]
    history = shown.partition("Payment history")[2]
    assert [history.index(step) for step in steps] == sorted(history.index(step) for step in steps)
    assert history.count("exact time not provided") == 2


def test_the_history_of_a_return_includes_the_missed_success(
    viewer: Browser, portal_service: Sandbox, loan: Account
) -> None:
    payment = portal_service.world.repayment(loan.uuid, status="FAILED_AFTER_SUCCESS")
    assert "Succeeded before; time not provided" in read_detail(viewer, loan, payment["uuid"])


def test_a_missed_success_comes_before_a_return_whose_time_is_uncertain(
    viewer: Browser, portal_service: Sandbox, loan: Account
) -> None:
    payment = portal_service.world.repayment(loan.uuid, status="FAILED_AFTER_SUCCESS")
    payload = {"uuid": payment["uuid"], "status": "FAILED_AFTER_SUCCESS"}
    at = datetime(2026, 3, 10, 16, 9, tzinfo=UTC)
    portal_service.world.message("payment.failed", payload, at=at, zone="IST")
    call_command("sync_messages", verbosity=0)
    history = read_detail(viewer, loan, payment["uuid"]).partition("Payment history")[2]
    steps = ["Succeeded before; time not on file", "2026-03-10 21:39:00 IST"]
    assert history.index(steps[0]) < history.index(steps[1])


@pytest.mark.slow
def test_the_panel_reads_the_repayments_of_the_loan(
    viewer: Browser, portal_service: Sandbox, loan: Account
) -> None:
    payment = portal_service.world.repayment(loan.uuid, status="SCHEDULED")
    read_detail(viewer, loan, payment["uuid"])
    portal_service.world.amend(payment["uuid"], status="SUCCEEDED")
    shown = panel(viewer, f"/repayments/{payment['uuid']}/?refresh=1", "repayment")
    assert shown.startswith('<div class="sd-stack sd-account" id="repayment"')
    assert "Then seen as succeeded" in shown
    assert portal_service.calls[-1].operation == "repayments.of_loan"


def test_a_repayment_without_a_saved_answer_has_a_page(viewer: Browser) -> None:
    Repayment.objects.create(uuid="r-1", amount="12.50", status="QUEUED_RETRY")
    shown = page(viewer, "/repayments/r-1/")
    assert "$12.50" in shown
    assert "QUEUED_RETRY" in shown
    assert "No events yet" in shown


def test_a_repayment_that_left_the_list_keeps_its_last_copy(
    viewer: Browser, portal_service: Sandbox, loan: Account
) -> None:
    payment = portal_service.world.repayment(loan.uuid, amount="250.10", ach_id="ach-7")
    read_detail(viewer, loan, payment["uuid"])
    allow_refresh(loan)
    portal_service.fail_next("repayments.of_loan", body=[])
    shown = read_detail(viewer, loan, payment["uuid"])
    reads = given.reads_of(Kind.LOAN)
    assert {call.operation for call in portal_service.calls[-len(reads) :]} == {*reads}
    assert "$250.10" in shown
    assert "ACH ID ach-7" in visible_text(shown)
    assert Repayment.objects.get().account == loan


def test_the_record_page_of_a_repayment_leads_to_its_page(viewer: Browser) -> None:
    Repayment.objects.create(uuid="r-1")
    assert viewer.get("/registry/repayment/r-1/")["Location"] == "/repayments/r-1/"


def test_a_view_is_recorded_and_an_unknown_id_is_not_found(
    viewer: Browser, portal_service: Sandbox, loan: Account
) -> None:
    payment = portal_service.world.repayment(loan.uuid)
    read_detail(viewer, loan, payment["uuid"])
    assert PageView.objects.get(page="repayments.detail").subject_uuid == payment["uuid"]
    assert viewer.get("/repayments/nothing/").status_code == 404
