"""Looking up the loan or line that an offer became, under the offer's ID."""

import pytest
from django.http import HttpResponse
from django.test import Client as Browser

from portal.accounts.roles import Role
from portal.audit.models import Entry
from portal.records.models import Account, Application, Borrower, Kind
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import browser_of
from tests.portal.applications.answers import offer, save_application, saved_application
from tests.portal.pages import page


@pytest.fixture
def borrower(portal_service: Sandbox) -> Borrower:
    return given.borrower(portal_service)


@pytest.fixture
def record(portal_service: Sandbox, borrower: Borrower) -> Application:
    """A loan application that the service has decided."""
    return save_application(borrower, portal_service.world.loan_application(borrower.uuid, amount=25000))


def first_offer_id(portal_service: Sandbox, record: Application) -> str:
    return str(portal_service.world.application(record.uuid)["offers"][0]["uuid"])


def follow(browser: Browser, record: Application, offer_uuid: str) -> HttpResponse:
    return browser.post(f"{record.get_absolute_url()}follow/", {"offer": offer_uuid})


def called_operations(portal_service: Sandbox) -> list[str]:
    return [call.operation for call in portal_service.calls]


def test_a_loan_with_the_offers_id_is_saved_and_linked(
    servicer: Browser, portal_service: Sandbox, record: Application
) -> None:
    uuid = first_offer_id(portal_service, record)
    portal_service.world.accept_offer(record.uuid, uuid)
    answer = follow(servicer, record, uuid)
    loan = Account.objects.get(kind=Kind.LOAN)
    assert (answer.status_code, answer["Location"]) == (303, loan.get_absolute_url())
    assert (loan.uuid, loan.borrower_uuid, loan.created_by) == (
        uuid,
        record.borrower_uuid,
        "Servicer (servicer)",
    )
    assert called_operations(portal_service) == ["loans.get"]
    assert f'href="{loan.get_absolute_url()}"' in page(servicer, record.get_absolute_url())


@pytest.mark.slow
def test_a_line_with_the_offers_id_is_saved(
    servicer: Browser, portal_service: Sandbox, borrower: Borrower
) -> None:
    record = save_application(borrower, portal_service.world.line_application(borrower.uuid))
    uuid = first_offer_id(portal_service, record)
    portal_service.world.accept_offer(record.uuid, uuid)
    answer = follow(servicer, record, uuid)
    line = Account.objects.get(kind=Kind.LINE)
    assert (line.uuid, answer["Location"]) == (uuid, line.get_absolute_url())
    assert called_operations(portal_service) == ["loans.get", "credit_lines.statement"]


def test_an_offer_without_an_account_shows_a_notice(
    servicer: Browser, portal_service: Sandbox, record: Application
) -> None:
    answer = follow(servicer, record, first_offer_id(portal_service, record))
    assert (answer.status_code, answer["Location"]) == (303, record.get_absolute_url())
    assert "no loan or line with ID" in page(servicer, answer["Location"])
    assert not Account.objects.filter(kind__in=[Kind.LOAN, Kind.LINE]).exists()


def test_the_lookup_is_audited(servicer: Browser, portal_service: Sandbox, record: Application) -> None:
    uuid = first_offer_id(portal_service, record)
    follow(servicer, record, uuid)
    entry = Entry.objects.get(action="applications.follow")
    assert (entry.subject_uuid, entry.detail) == (record.uuid, {"offer": uuid, "found": ""})


@pytest.mark.slow
def test_an_unavailable_service_shows_503(
    servicer: Browser, portal_service: Sandbox, record: Application
) -> None:
    portal_service.fail_next("loans.get", status=503, times=None)
    answer = follow(servicer, record, first_offer_id(portal_service, record))
    assert answer.status_code == 503
    assert "isn’t responding" in answer.content.decode()


@pytest.mark.slow
def test_only_lending_roles_can_look_up_accounts(portal_service: Sandbox, record: Application) -> None:
    uuid = first_offer_id(portal_service, record)
    for role in Role:
        expected = 303 if role in (Role.SERVICER, Role.SUPERVISOR) else 403
        assert follow(browser_of(role), record, uuid).status_code == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    "uuid", ["", "51aa7f29-0000-4000-8000-000000000009", "../../users", "\x00", "x" * 5000]
)
def test_invalid_offer_ids_are_not_looked_up(
    servicer: Browser, portal_service: Sandbox, borrower: Borrower, uuid: str
) -> None:
    record = saved_application(borrower, offer(0), offer(1, uuid="../../users"))
    assert follow(servicer, record, uuid).status_code in (404, 422)
    assert portal_service.calls == []
