"""One repayment: what was told of it, and its life as far as it is known."""

from datetime import timedelta

import pytest
from django.test import Client as Browser
from django.utils import timezone

from portal.audit.models import Entry
from portal.registry.models import Kind, Record, Snapshot
from servicing.sandbox import Sandbox
from tests import given
from tests.portal.pages import forget, page, panel, words


@pytest.fixture
def loan(portal_service: Sandbox) -> Record:
    return given.loan(portal_service, given.borrower(portal_service, first_name="Northwind Baking Co LLC"))


def told(browser: Browser, loan: Record, uuid: str) -> str:
    """The page of a repayment after its list was read."""
    panel(browser, loan.get_absolute_url(), "loan-repayments")
    return page(browser, f"/repayments/{uuid}/")


def test_it_shows_all_fields_and_leads_to_account_and_borrower(
    viewer: Browser, portal_service: Sandbox, loan: Record
) -> None:
    payment = portal_service.world.repayment(
        loan.uuid, amount="250.10", ach_id="ach-7", initiation_date="2026-03-08 09:00:00 IST"
    )
    shown = told(viewer, loan, payment["uuid"])
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


def test_what_is_not_provided_is_named_in_one_line(
    viewer: Browser, portal_service: Sandbox, loan: Record
) -> None:
    payment = portal_service.world.repayment(loan.uuid, amount="250.10", ach_id="ach-7", ach_batch_id=None)
    shown = told(viewer, loan, payment["uuid"])
    details = words(shown.partition("life-title")[0])
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
def test_a_return_says_why(
    viewer: Browser, portal_service: Sandbox, loan: Record, error: str | None, reason: str
) -> None:
    payment = portal_service.world.repayment(
        loan.uuid, status="FAILED_AFTER_SUCCESS", payment_type="RETURNED", error_description=error
    )
    shown = told(viewer, loan, payment["uuid"])
    assert "Returned after posting" in shown
    assert ">Returned<" not in shown.partition("Details</h2>")[0]
    assert reason in shown


def test_its_life_is_one_ordered_line_with_its_gaps(
    viewer: Browser, portal_service: Sandbox, loan: Record
) -> None:
    payment = portal_service.world.repayment(loan.uuid, status="SCHEDULED", effective_date="2026-03-08")
    told(viewer, loan, payment["uuid"])
    for status in ("SUCCEEDED", "FAILED_AFTER_SUCCESS"):
        portal_service.world.amend(payment["uuid"], status=status)
        forget(loan)
        shown = told(viewer, loan, payment["uuid"])
    words = ["Effective", "First seen as scheduled", "seen as succeeded", "seen as returned after"]
    life = shown.partition("Payment history")[2]
    assert [life.index(one) for one in words] == sorted(life.index(one) for one in words)
    assert life.count("exact time not provided") == 2


def test_a_success_that_nobody_saw_is_named(viewer: Browser, portal_service: Sandbox, loan: Record) -> None:
    payment = portal_service.world.repayment(loan.uuid, status="FAILED_AFTER_SUCCESS")
    assert "Succeeded before; time not provided" in told(viewer, loan, payment["uuid"])


def test_its_panel_reads_the_list_it_is_in(viewer: Browser, portal_service: Sandbox, loan: Record) -> None:
    payment = portal_service.world.repayment(loan.uuid, status="SCHEDULED")
    told(viewer, loan, payment["uuid"])
    portal_service.world.amend(payment["uuid"], status="SUCCEEDED")
    shown = panel(viewer, f"/repayments/{payment['uuid']}/?refresh=1", "repayment")
    assert shown.startswith('<div class="sd-stack sd-account" id="repayment"')
    assert "Then seen as succeeded" in shown
    assert portal_service.calls[-1].operation == "repayments.of_loan"


def test_one_of_which_only_the_row_is_known_has_a_page(viewer: Browser) -> None:
    Record.objects.create(kind=Kind.REPAYMENT, uuid="r-1", amount="12.50", status="QUEUED_RETRY")
    shown = page(viewer, "/repayments/r-1/")
    assert "$12.50" in shown
    assert "QUEUED_RETRY" in shown
    assert "No events yet" in shown


def test_an_earlier_answer_of_any_shape_breaks_nothing(
    viewer: Browser, portal_service: Sandbox, loan: Record
) -> None:
    payment = portal_service.world.repayment(loan.uuid)
    told(viewer, loan, payment["uuid"])
    Snapshot.objects.create(
        record=Record.objects.get(uuid=payment["uuid"]),
        at=timezone.now() - timedelta(days=3),
        source="service",
        digest="0",
        answer=f'{{"uuid": "{payment["uuid"]}", "status": 7, "completion_date": {{}}, "effective_date": "soon"}}',
    )
    assert "First seen as" in page(viewer, f"/repayments/{payment['uuid']}/")


def test_a_look_is_recorded_and_an_unknown_one_has_no_page(
    viewer: Browser, portal_service: Sandbox, loan: Record
) -> None:
    payment = portal_service.world.repayment(loan.uuid)
    told(viewer, loan, payment["uuid"])
    assert Entry.objects.get(action="repayments.detail").subject_uuid == payment["uuid"]
    assert viewer.get("/repayments/nothing/").status_code == 404
