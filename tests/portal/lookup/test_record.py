"""The page of one record: its saved copy, earlier copies and borrower."""

import pytest
from django.test import Client as Browser
from django.utils import timezone

from portal.records import store
from portal.records.models import Account, Kind, Source
from servicing import Loan, codec
from servicing.sandbox import Sandbox
from servicing.sandbox.wire import dumps
from tests import given


def save_loan(sandbox: Sandbox, **changes: object) -> Account:
    owner = given.borrower(sandbox, first_name="Northwind Baking Co LLC")
    loan = codec.decode(Loan, dumps(sandbox.world.loan(owner.uuid) | changes))
    return store.save(store.observe(loan, borrower_uuid=owner.uuid), source=Source.SERVICE)[0]


@pytest.mark.slow
def test_page_shows_the_answer_and_links_the_borrower(viewer: Browser, portal_service: Sandbox) -> None:
    loan = save_loan(portal_service, risk_grade="B <2>")
    page = viewer.get(f"/registry/loan/{loan.uuid}/").content.decode()
    assert "B &lt;2&gt;" in page
    assert "12 entries" in page
    assert f'href="/borrowers/{loan.borrower_uuid}/">Northwind Baking Co LLC</a>' in page


@pytest.mark.slow
def test_an_earlier_answer_is_listed(viewer: Browser, portal_service: Sandbox) -> None:
    loan = save_loan(portal_service)
    later = codec.decode(Loan, dumps({"uuid": loan.uuid, "status": "CLOSED"}))
    store.save(store.observe(later), source=Source.SERVICE)
    page = viewer.get(f"/registry/loan/{loan.uuid}/").content.decode()
    assert "From the lending service" in page
    assert "No earlier copies" not in page


def test_a_record_with_only_an_id_shows_a_note(viewer: Browser, portal_service: Sandbox) -> None:
    given.account(Kind.LOAN, given.borrower(portal_service), "loan-1")
    page = viewer.get("/registry/loan/loan-1/").content.decode()
    assert "Only the ID is on file" in page


def test_a_loan_of_an_unknown_borrower_has_a_page(viewer: Browser) -> None:
    Account.objects.create(kind=Kind.LOAN, uuid="loan-1", borrower_uuid="nobody")
    assert viewer.get("/registry/loan/loan-1/").status_code == 200


@pytest.mark.slow
@pytest.mark.parametrize(("role", "offered"), [("viewer", False), ("servicer", True)])
def test_only_a_servicer_is_offered_to_correct(
    request: pytest.FixtureRequest, portal_service: Sandbox, role: str, offered: bool
) -> None:
    browser = request.getfixturevalue(role)
    given.account(Kind.LOAN, given.borrower(portal_service), "loan-1")
    page = browser.get("/registry/loan/loan-1/").content.decode()
    assert ('href="/registry/loan/loan-1/correct/"' in page) == offered
    assert 'href="/registry/loan/loan-1/archive/"' not in page


def test_an_archived_loan_is_marked_and_can_be_restored(supervisor: Browser, portal_service: Sandbox) -> None:
    given.account(Kind.LOAN, given.borrower(portal_service), "loan-1")
    Account.objects.filter(uuid="loan-1").update(archived_at=timezone.now())
    page = supervisor.get("/registry/loan/loan-1/").content.decode()
    assert "Archived" in page
    assert "Restore" in page


@pytest.mark.parametrize(
    "address",
    [
        "/registry/loan/nothing/",
        "/registry/ship/x/",
        "/registry/loan/%00/",
        "/registry/loan_repayments/loan-1/",
    ],
)
def test_an_unknown_record_is_not_found(viewer: Browser, address: str) -> None:
    given.put_answer(Kind.LOAN_REPAYMENTS, "loan-1", "[]")
    assert viewer.get(address).status_code == 404
