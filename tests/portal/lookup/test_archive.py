"""Archiving and restoring records."""

from datetime import timedelta

import pytest
from django.http import HttpResponse
from django.test import Client as Browser
from django.utils import timezone

from portal.audit.models import Entry
from portal.records.models import Account, Borrower, Repayment
from servicing.sandbox import Sandbox
from tests import given
from tests.portal import pages

pytestmark = pytest.mark.postgres


@pytest.fixture
def borrower(portal_service: Sandbox) -> Borrower:
    return given.borrower(portal_service, first_name="Northwind Baking Co LLC")


def archive(browser: Browser, record: Account, act: str = "archive", reason: str = "Doubled") -> HttpResponse:
    return browser.post(f"/registry/{record.kind}/{record.uuid}/archive/", {"act": act, "reason": reason})


def is_listed(browser: Browser) -> bool:
    pages = [browser.get(address).content.decode() for address in ("/borrowers/", "/search/?q=northwind")]
    listed = {"Northwind Baking Co LLC</a>" in page or "Baking Co LLC" in page for page in pages}
    assert len(listed) == 1
    return listed.pop()


@pytest.mark.slow
def test_an_archived_borrower_is_hidden_but_keeps_its_page(supervisor: Browser, borrower: Borrower) -> None:
    assert is_listed(supervisor)
    assert archive(supervisor, borrower)["Location"] == borrower.get_absolute_url()
    assert not is_listed(supervisor)
    assert supervisor.get(borrower.get_absolute_url()).status_code == 200


def test_an_archived_borrower_can_be_restored(supervisor: Browser, borrower: Borrower) -> None:
    archive(supervisor, borrower)
    archive(supervisor, borrower, "restore")
    assert is_listed(supervisor)


def test_archiving_and_restoring_are_recorded_with_reasons(supervisor: Browser, borrower: Borrower) -> None:
    archive(supervisor, borrower)
    archive(supervisor, borrower, "restore", "Not doubled")
    entries = Entry.objects.filter(action__startswith="lookup.").order_by("id")
    assert list(entries.values_list("action", "reason")) == [
        ("lookup.archive", "Doubled"),
        ("lookup.restore", "Not doubled"),
    ]


@pytest.mark.slow
def test_archiving_twice_does_not_restore(supervisor: Browser, borrower: Borrower) -> None:
    archive(supervisor, borrower)
    archive(supervisor, borrower)
    assert not is_listed(supervisor)
    assert Entry.objects.filter(action="lookup.archive").count() == 1


def test_the_form_offers_to_archive_or_restore(supervisor: Browser, borrower: Borrower) -> None:
    address = f"/registry/borrower/{borrower.uuid}/archive/"
    assert 'name="act" value="archive"' in supervisor.get(address).content.decode()
    archive(supervisor, borrower)
    assert 'name="act" value="restore"' in supervisor.get(address).content.decode()


@pytest.mark.parametrize(("act", "reason"), [("archive", ""), ("delete", "Doubled")])
def test_a_missing_reason_or_unknown_action_is_rejected(
    supervisor: Browser, borrower: Borrower, act: str, reason: str
) -> None:
    assert archive(supervisor, borrower, act, reason).status_code == 422
    assert is_listed(supervisor)


@pytest.mark.slow
def test_archiving_a_borrower_lists_what_stays_visible(
    supervisor: Browser, portal_service: Sandbox, borrower: Borrower
) -> None:
    loan, _, line = (
        given.loan(portal_service, borrower),
        given.loan(portal_service, borrower),
        given.line(portal_service, borrower),
    )
    archive(supervisor, given.loan(portal_service, borrower))
    given.loan(portal_service, given.borrower(portal_service))
    page = supervisor.get(f"/registry/borrower/{borrower.uuid}/archive/").content.decode()
    assert "stay in lists and search: 1 key person, 2 loans, 1 line of credit." in page
    assert "Its accounts no longer match" in page

    def is_linked(account: Account, address: str) -> bool:
        return f'href="{account.get_absolute_url()}"' in supervisor.get(address).content.decode()

    assert is_linked(loan, "/loans/?q=northwind")
    archive(supervisor, borrower)
    assert is_linked(loan, "/loans/")
    assert is_linked(line, "/lines/")
    assert is_linked(loan, f"/search/?q={loan.uuid}")
    assert not is_linked(loan, "/loans/?q=northwind")
    restoring = supervisor.get(f"/registry/borrower/{borrower.uuid}/archive/").content.decode()
    assert "stay in lists and search" not in restoring


@pytest.mark.slow
def test_archiving_a_loan_lists_what_stays_visible(
    supervisor: Browser, portal_service: Sandbox, borrower: Borrower
) -> None:
    loan = given.loan(portal_service, borrower)
    address = f"/registry/loan/{loan.uuid}/archive/"
    assert "stay in lists and search" not in supervisor.get(address).content.decode()
    payment = Repayment.objects.create(uuid="p-1", borrower_uuid=borrower.uuid, account=loan)
    assert "stay in lists and search: 1 repayment." in supervisor.get(address).content.decode()
    archive(supervisor, loan)
    assert payment.get_absolute_url() in supervisor.get("/repayments/").content.decode()


def test_an_archived_loan_leaves_its_borrowers_past_due_total(
    supervisor: Browser, portal_service: Sandbox, borrower: Borrower
) -> None:
    opened = timezone.localdate() - timedelta(days=45)
    loan = given.loan(portal_service, borrower, amount="1200.00", interest_rate="0", opened=opened)
    pages.panel(supervisor, loan.get_absolute_url(), "loan")
    for act, number in (("archive", 0), ("restore", 1)):
        archive(supervisor, loan, act)
        found = pages.page(supervisor, "/borrowers/?past_due=yes")
        assert found.count("<tr data-row") == number


def test_a_servicer_cannot_archive(servicer: Browser, borrower: Borrower) -> None:
    assert archive(servicer, borrower).status_code == 403
    assert is_listed(servicer)


def test_account_pages_link_to_correct_and_archive(
    servicer: Browser, supervisor: Browser, portal_service: Sandbox, borrower: Borrower
) -> None:
    for account in (given.loan(portal_service, borrower), given.line(portal_service, borrower)):
        page = supervisor.get(account.get_absolute_url()).content.decode()
        for act in ("correct", "archive"):
            assert f'href="/registry/{account.kind}/{account.uuid}/{act}/"' in page
        shown = servicer.get(account.get_absolute_url()).content.decode()
        assert f"/registry/{account.kind}/{account.uuid}/archive/" not in shown
