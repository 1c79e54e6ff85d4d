"""The borrower of a message: known from its payment, or linked by staff to its bank account."""

import pytest
from django.test import Client as Browser

from portal.audit.models import Entry
from portal.messaging.models import BankAccount
from servicing.sandbox import Sandbox
from tests import given

pytestmark = pytest.mark.postgres

ACCOUNT = "bank-1"


def add_payment_message(portal_service: Sandbox, uuid: str = "p-1") -> str:
    payload = {"uuid": uuid, "status": "SUCCEEDED", "borrower_bank_account_uuid": ACCOUNT}
    return str(portal_service.world.message("payment.succeeded", payload)["uuid"])


def text(browser: Browser, address: str = "/messages/") -> str:
    return browser.get(address).content.decode()


@pytest.mark.slow
def test_a_known_payment_links_to_its_loan_and_borrower(viewer: Browser, portal_service: Sandbox) -> None:
    loan = given.loan(portal_service, given.borrower(portal_service, first_name="Northwind Baking Co LLC"))
    repayment = portal_service.world.repayment(loan.uuid)
    viewer.get(f"{loan.get_absolute_url()}?refresh=1")
    message = portal_service.world.message("payment.scheduled", repayment)["uuid"]
    assert "Northwind Baking Co LLC" in text(viewer)
    page = text(viewer, f"/messages/{message}/")
    assert f'href="{loan.get_absolute_url()}"' in page
    assert f'href="/repayments/{repayment["uuid"]}/"' in page
    assert "Northwind Baking Co LLC" in text(viewer, f"/messages/?borrower={loan.borrower_uuid}")


@pytest.mark.slow
def test_a_link_applies_to_all_messages_of_a_bank_account(servicer: Browser, portal_service: Sandbox) -> None:
    borrower = given.borrower(portal_service, first_name="Cedar Mill Dental PC")
    message, other = add_payment_message(portal_service), add_payment_message(portal_service, "p-2")
    assert f'href="/messages/{message}/link/"' in text(servicer)
    answer = servicer.post(f"/messages/{message}/link/", {"borrower": "cedar mill"})
    assert answer.status_code == 303
    assert "Cedar Mill Dental PC" in text(servicer, f"/messages/{other}/")
    assert text(servicer, f"/messages/?borrower={borrower.uuid}").count("data-message=") == 2
    entry = Entry.objects.get(action="messaging.link")
    assert (entry.subject_uuid, entry.changes) == (ACCOUNT, {"borrower_uuid": ["", borrower.uuid]})


def test_a_link_can_be_removed(servicer: Browser, portal_service: Sandbox) -> None:
    borrower = given.borrower(portal_service)
    message = add_payment_message(portal_service)
    text(servicer)
    servicer.post(f"/messages/{message}/link/", {"borrower": borrower.uuid})
    servicer.post(f"/messages/{message}/link/", {"borrower": ""})
    assert not BankAccount.objects.exists()
    assert "Unlinked" in text(servicer, f"/messages/{message}/")
    assert servicer.post(f"/messages/{message}/link/", {"borrower": ""}).status_code == 422
    assert Entry.objects.filter(action="messaging.link").count() == 2


def test_an_ambiguous_name_is_rejected(servicer: Browser, portal_service: Sandbox) -> None:
    for name in ("Harbor Bakery LLC", "Harbor Pine LLP"):
        given.borrower(portal_service, first_name=name)
    message = add_payment_message(portal_service)
    text(servicer)
    answer = servicer.post(f"/messages/{message}/link/", {"borrower": "harbor"})
    assert answer.status_code == 422
    assert "Several borrowers match" in answer.content.decode()
    assert not BankAccount.objects.exists()


def test_a_known_payment_cannot_be_linked_again(servicer: Browser, portal_service: Sandbox) -> None:
    loan = given.loan(portal_service, given.borrower(portal_service))
    repayment = portal_service.world.repayment(loan.uuid)
    servicer.get(f"{loan.get_absolute_url()}?refresh=1")
    message = portal_service.world.message("payment.scheduled", repayment)["uuid"]
    text(servicer)
    assert servicer.post(f"/messages/{message}/link/", {"borrower": "x"}).status_code == 303
    assert not BankAccount.objects.exists()


def test_a_viewer_cannot_link_messages(viewer: Browser, portal_service: Sandbox) -> None:
    message = add_payment_message(portal_service)
    assert f"/messages/{message}/link/" not in text(viewer)
    assert viewer.post(f"/messages/{message}/link/", {"borrower": "x"}).status_code == 403


@pytest.mark.slow
def test_the_unlinked_filter_finds_messages_without_a_borrower(
    servicer: Browser, portal_service: Sandbox
) -> None:
    loan = given.loan(portal_service, given.borrower(portal_service))
    repayment = portal_service.world.repayment(loan.uuid)
    servicer.get(f"{loan.get_absolute_url()}?refresh=1")
    known = portal_service.world.message("payment.scheduled", repayment)["uuid"]
    unknown, other = (
        add_payment_message(portal_service),
        portal_service.world.message("user.updated", {})["uuid"],
    )
    assert known in text(servicer)
    page = text(servicer, "/messages/?link=unlinked")
    assert [uuid in page for uuid in (known, unknown, other)] == [False, True, True]
    servicer.post(f"/messages/{unknown}/link/", {"borrower": loan.borrower_uuid})
    assert 'id="list-title">1\n' in text(servicer, "/messages/?link=unlinked")


@pytest.mark.slow
def test_a_note_appears_on_the_message_and_the_borrower(servicer: Browser, portal_service: Sandbox) -> None:
    borrower = given.borrower(portal_service)
    message = add_payment_message(portal_service)
    text(servicer)
    servicer.post(f"/messages/{message}/link/", {"borrower": borrower.uuid})
    answer = servicer.post(f"/messages/{message}/note/", {"text": "Called the bank"})
    assert answer["Location"] == f"/messages/{message}/"
    for address in (f"/messages/{message}/", f"/borrowers/{borrower.uuid}/?tab=notes"):
        assert "Called the bank" in text(servicer, address)
    entry = Entry.objects.get(action="notes.add")
    assert (entry.subject_kind, entry.subject_uuid, entry.borrower_uuid) == (
        "message",
        message,
        borrower.uuid,
    )
