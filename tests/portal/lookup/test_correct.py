"""Correcting a record's name or borrower."""

from datetime import timedelta

import pytest
from django.test import Client as Browser
from django.utils import timezone

from portal.audit.models import Entry
from portal.records import store
from portal.records.models import Account, Kind
from portal.records.search import find_by_text
from servicing import Borrower
from servicing.sandbox import Sandbox
from tests import given
from tests.portal import pages
from tests.portal.applications.answers import saved_application

pytestmark = pytest.mark.postgres


@pytest.fixture
def loan(portal_service: Sandbox) -> Account:
    return given.account(Kind.LOAN, given.borrower(portal_service), "loan-1", label="Oven")


def correct(browser: Browser, record: Account, **typed: str) -> object:
    current = {"label": record.label, "borrower_uuid": record.borrower_uuid, "reason": "Told by phone"}
    return browser.post(f"/registry/{record.kind}/{record.uuid}/correct/", current | typed)


def test_a_corrected_name_is_searchable(servicer: Browser, loan: Account) -> None:
    answer = correct(servicer, loan, label="Bread oven of 2026")
    assert (answer.status_code, answer["Location"]) == (303, loan.get_absolute_url())
    assert find_by_text(Kind.LOAN, "bread oven").get().label == "Bread oven of 2026"


def test_a_loan_can_be_moved_to_another_borrower(
    servicer: Browser, portal_service: Sandbox, loan: Account
) -> None:
    right = given.borrower(portal_service, first_name="Acme Farms LLC")
    correct(servicer, loan, borrower_uuid=right.uuid)
    loan.refresh_from_db()
    assert loan.borrower_uuid == right.uuid


@pytest.mark.slow
def test_what_is_moved_counts_for_its_new_borrower_only(servicer: Browser, portal_service: Sandbox) -> None:
    wrong, right = given.borrower(portal_service), given.borrower(portal_service)
    opened = timezone.localdate() - timedelta(days=45)
    loan = given.loan(portal_service, wrong, amount="1200.00", interest_rate="0", opened=opened)
    pages.panel(servicer, loan.get_absolute_url(), "loan")
    application = saved_application(wrong, status={"decision": "IN_REVIEW", "details": None})

    def found(query: str) -> list[bool]:
        shown = pages.page(servicer, f"/borrowers/?{query}")
        return [f'href="{one.get_absolute_url()}"' in shown for one in (wrong, right)]

    for record, query in ((loan, "past_due=yes"), (application, "application=open")):
        assert found(query) == [True, False]
        correct(servicer, record, borrower_uuid=right.uuid)
        assert found(query) == [False, True]


def test_a_correction_is_recorded_with_changes_and_reason(servicer: Browser, loan: Account) -> None:
    correct(servicer, loan, label="Bread oven")
    entry = Entry.objects.get(action="lookup.correct")
    assert (entry.changes, entry.reason) == ({"label": ["Oven", "Bread oven"]}, "Told by phone")
    assert entry.subject_uuid == loan.uuid


def test_a_correction_without_changes_is_not_recorded(servicer: Browser, loan: Account) -> None:
    answer = correct(servicer, loan)
    assert "No changes to save" in servicer.get(answer["Location"]).content.decode()
    assert not Entry.objects.filter(action="lookup.correct").exists()


def test_a_correction_keeps_the_latest_answer(servicer: Browser, portal_service: Sandbox) -> None:
    user = portal_service.world.borrower(email="then@northwind.example")
    owner = given.save_answer(user)
    given.save_answer(user | {"email": "now@northwind.example"})
    correct(servicer, owner, label="Northwind")
    owner.refresh_from_db()
    assert (owner.label, store.last_answer(owner, Borrower).email) == ("Northwind", "now@northwind.example")


def test_a_borrower_cannot_belong_to_another_borrower(servicer: Browser, portal_service: Sandbox) -> None:
    owner, other = given.borrower(portal_service), given.borrower(portal_service)
    correct(servicer, owner, borrower_uuid=other.uuid, label="Northwind")
    owner.refresh_from_db()
    assert (owner.label, owner.borrower_uuid) == ("Northwind", owner.uuid)


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ({"borrower_uuid": "3f2b8c1e-9d47-4a60-b1c5-7e8f90a2d364"}, "Add the borrower first"),
        ({"borrower_uuid": ""}, "Enter the borrower ID."),
        ({"reason": " "}, "Enter the reason."),
        ({"label": "x" * 301}, "Up to 300"),
    ],
)
def test_invalid_input_is_rejected(
    servicer: Browser, loan: Account, typed: dict[str, str], sentence: str
) -> None:
    answer = correct(servicer, loan, **typed)
    assert answer.status_code == 422
    assert sentence in answer.content.decode()
    loan.refresh_from_db()
    assert loan.label == "Oven"


def test_the_form_shows_the_current_values(servicer: Browser, loan: Account) -> None:
    page = servicer.get(f"/registry/loan/{loan.uuid}/correct/").content.decode()
    assert 'value="Oven"' in page
    assert f'value="{loan.borrower_uuid}"' in page


def test_an_unknown_record_is_not_found(servicer: Browser) -> None:
    assert servicer.get("/registry/loan/nothing/correct/").status_code == 404


def test_a_viewer_cannot_correct_records(viewer: Browser, loan: Account) -> None:
    assert correct(viewer, loan, label="Bread oven").status_code == 403


def test_a_borrowers_name_cannot_be_blank(servicer: Browser, portal_service: Sandbox) -> None:
    borrower = given.borrower(portal_service, first_name="Acme Farms LLC")
    answer = correct(servicer, borrower, label=" ")
    assert (answer.status_code, "Enter the borrower" in answer.content.decode()) == (422, True)
    borrower.refresh_from_db()
    assert borrower.label == "Acme Farms LLC"
