"""Whether an offer has become a loan or a line: one look under its identifier, told as a hint."""

import pytest
from django.http import HttpResponse
from django.test import Client as Browser

from portal.accounts.roles import Role
from portal.audit.models import Entry
from portal.registry.models import Kind, Record
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import browser_of
from tests.portal.applications.answers import known, offer, told
from tests.portal.pages import page


@pytest.fixture
def borrower(portal_service: Sandbox) -> Record:
    return given.borrower(portal_service)


@pytest.fixture
def record(portal_service: Sandbox, borrower: Record) -> Record:
    """An application for a loan that the service has decided."""
    return told(borrower, portal_service.world.loan_application(borrower.uuid, amount=25000))


def first_offer(portal_service: Sandbox, record: Record) -> str:
    return str(portal_service.world.application(record.uuid)["offers"][0]["uuid"])


def follow(browser: Browser, record: Record, offer_uuid: str) -> HttpResponse:
    return browser.post(f"{record.get_absolute_url()}follow/", {"offer": offer_uuid})


def asked(portal_service: Sandbox) -> list[str]:
    return [call.operation for call in portal_service.calls]


def test_an_offer_that_became_a_loan_makes_it_known(
    servicer: Browser, portal_service: Sandbox, record: Record
) -> None:
    uuid = first_offer(portal_service, record)
    portal_service.world.accept_offer(record.uuid, uuid)
    answer = follow(servicer, record, uuid)
    loan = Record.objects.get(kind=Kind.LOAN)
    assert (answer.status_code, answer["Location"]) == (303, loan.get_absolute_url())
    assert (loan.uuid, loan.borrower_uuid, loan.created_by) == (
        uuid,
        record.borrower_uuid,
        "Servicer (servicer)",
    )
    assert asked(portal_service) == ["loans.get"]
    assert f'href="{loan.get_absolute_url()}"' in page(servicer, record.get_absolute_url())


def test_an_offer_that_became_a_line_makes_it_known(
    servicer: Browser, portal_service: Sandbox, borrower: Record
) -> None:
    record = told(borrower, portal_service.world.line_application(borrower.uuid))
    uuid = first_offer(portal_service, record)
    portal_service.world.accept_offer(record.uuid, uuid)
    answer = follow(servicer, record, uuid)
    line = Record.objects.get(kind=Kind.LINE)
    assert (line.uuid, answer["Location"]) == (uuid, line.get_absolute_url())
    assert asked(portal_service) == ["loans.get", "credit_lines.statement"]


def test_an_offer_that_became_nothing_is_told_as_no_proof(
    servicer: Browser, portal_service: Sandbox, record: Record
) -> None:
    answer = follow(servicer, record, first_offer(portal_service, record))
    assert (answer.status_code, answer["Location"]) == (303, record.get_absolute_url())
    assert "no loan or line with ID" in page(servicer, answer["Location"])
    assert not Record.objects.filter(kind__in=[Kind.LOAN, Kind.LINE]).exists()


def test_the_look_is_in_the_audit(servicer: Browser, portal_service: Sandbox, record: Record) -> None:
    uuid = first_offer(portal_service, record)
    follow(servicer, record, uuid)
    entry = Entry.objects.get(action="applications.follow")
    assert (entry.subject_uuid, entry.detail) == (record.uuid, {"offer": uuid, "found": ""})


def test_a_silent_service_is_said(servicer: Browser, portal_service: Sandbox, record: Record) -> None:
    portal_service.fail_next("loans.get", status=503, times=None)
    answer = follow(servicer, record, first_offer(portal_service, record))
    assert answer.status_code == 503
    assert "isn’t responding" in answer.content.decode()


def test_it_needs_a_role_that_lends(portal_service: Sandbox, record: Record) -> None:
    uuid = first_offer(portal_service, record)
    for role in Role:
        expected = 303 if role in (Role.SERVICER, Role.SUPERVISOR) else 403
        assert follow(browser_of(role), record, uuid).status_code == expected


@pytest.mark.parametrize(
    "uuid", ["", "51aa7f29-0000-4000-8000-000000000009", "../../users", "\x00", "x" * 5000]
)
def test_only_an_offer_of_this_application_is_looked_for(
    servicer: Browser, portal_service: Sandbox, borrower: Record, uuid: str
) -> None:
    record = known(borrower, offer(0), offer(1, uuid="../../users"))
    assert follow(servicer, record, uuid).status_code in (404, 422)
    assert portal_service.calls == []
