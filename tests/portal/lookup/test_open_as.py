"""Opening an unknown ID as a borrower's account, which loads it from the service."""

import pytest
from django.test import Client as Browser

from portal.audit.models import RemoteCall
from portal.records.models import Account, Kind, Source
from portal.records.rows import records_of
from servicing.sandbox import Sandbox
from tests import given

UNKNOWN = "3f2b8c1e-9d47-4a60-b1c5-7e8f90a2d364"


def open_as(browser: Browser, kind: str, uuid: str, owner: str) -> object:
    return browser.post("/search/open/", {"kind": kind, "uuid": uuid, "borrower_uuid": owner})


@pytest.mark.parametrize("kind", [Kind.LOAN, Kind.LINE, Kind.APPLICATION])
def test_an_account_at_the_service_is_saved_and_opened(
    viewer: Browser, portal_service: Sandbox, kind: Kind
) -> None:
    owner = given.borrower(portal_service)
    make = {
        "loan": portal_service.world.loan,
        "line": portal_service.world.line,
        "application": portal_service.world.line_application,
    }[kind]
    uuid = make(owner.uuid)["uuid"]
    answer = open_as(viewer, kind, uuid, owner.uuid)
    record = records_of(kind).get(uuid=uuid)
    assert (answer.status_code, answer["Location"]) == (303, record.get_absolute_url())
    assert (record.borrower_uuid, record.answer.source) == (owner.uuid, Source.SERVICE)


@pytest.mark.slow
def test_a_loan_missing_at_the_service_is_not_saved(viewer: Browser, portal_service: Sandbox) -> None:
    owner = given.borrower(portal_service, first_name="Acme LLC")
    answer = open_as(viewer, "loan", UNKNOWN, owner.uuid)
    assert answer.status_code == 404
    html = answer.content.decode()
    assert "The service has no loan with this ID under “Acme LLC”. Nothing was changed." in html
    assert "as line of credit" in html
    assert not Account.objects.filter(uuid=UNKNOWN).exists()


@pytest.mark.slow
def test_an_unavailable_service_shows_503(viewer: Browser, portal_service: Sandbox) -> None:
    owner = given.borrower(portal_service)
    for _ in range(3):
        portal_service.fail_next("loans.get", status=503)
    answer = open_as(viewer, "loan", UNKNOWN, owner.uuid)
    assert answer.status_code == 503
    assert "The service isn’t responding" in answer.content.decode()
    assert "as line of credit" in answer.content.decode()


@pytest.mark.parametrize(
    ("kind", "uuid", "owner"),
    [
        ("repayment", UNKNOWN, None),
        ("loan", "no/uuid", None),
        ("loan", UNKNOWN, "nobody"),
        ("", "", ""),
        ("loan", "\0", None),
    ],
)
def test_invalid_input_is_not_sent_to_the_service(
    viewer: Browser, portal_service: Sandbox, kind: str, uuid: str, owner: str | None
) -> None:
    borrower = given.borrower(portal_service)
    assert open_as(viewer, kind, uuid, borrower.uuid if owner is None else owner).status_code == 422
    assert not RemoteCall.objects.exists()


def test_get_is_not_allowed(viewer: Browser) -> None:
    assert viewer.get("/search/open/").status_code == 405
