"""Tests of a client operation without a row in the table, and of a kind without a model."""

import pytest
from django.conf import LazySettings
from django.test import Client as Browser

from portal.audit.models import Actor, RemoteCall
from portal.audit.service_health import measure_health
from portal.gateway import client as gateway
from portal.records.models import Account, Kind
from portal.records.sources import UnknownOperation
from servicing import Client, Loan
from servicing.resource import Resource
from servicing.sandbox import Sandbox
from tests import given


class NewResource(Resource):
    """A client area that was added without a row in the table."""

    def details(self, borrower_id: str, loan_id: str) -> Loan:
        path = "/v1/users/{borrower_id}/loan/{loan_id}"
        return self._get("loans.details", path, Loan, borrower_id=borrower_id, loan_id=loan_id)


def read_details(client: Client, portal_service: Sandbox) -> None:
    borrower = given.borrower(portal_service)
    loan = portal_service.world.loan(borrower.uuid)
    NewResource(client.loans._transport).details(borrower.uuid, loan["uuid"])


@pytest.fixture
def client(portal_service: Sandbox) -> Client:
    return gateway.client_for(Actor.system("test"))


def test_an_unknown_operation_is_recorded_but_not_saved(
    client: Client, portal_service: Sandbox, viewer: Browser, caplog: pytest.LogCaptureFixture
) -> None:
    read_details(client, portal_service)
    assert RemoteCall.objects.get().operation == "loans.details"
    assert not Account.objects.exists()
    assert "loans.details has no row in portal.records.sources" in caplog.text
    assert [(group.name, group.calls) for group in measure_health() if group.calls] == [("Other", 1)]
    assert "loans.details" in viewer.get("/status/?outcome=").content.decode()


def test_an_unknown_operation_raises_in_debug_mode(
    client: Client, portal_service: Sandbox, settings: LazySettings
) -> None:
    settings.DEBUG = True
    with pytest.raises(UnknownOperation):
        read_details(client, portal_service)


def test_what_has_no_model_of_its_own_is_no_account(portal_service: Sandbox) -> None:
    with pytest.raises(ValueError, match="repayment"):
        given.account(Kind.REPAYMENT, given.borrower(portal_service), "r-1")
    assert not Account.objects.exists()
