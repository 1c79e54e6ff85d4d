"""Notes, pinned notes and follow-ups."""

from datetime import timedelta

import pytest
import time_machine
from django.test import Client as Browser
from django.utils import timezone

from portal.accounts.roles import Role
from portal.audit.models import Entry
from portal.notes.models import FollowUp, Note
from portal.records.models import Account
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import browser_of

pytestmark = [pytest.mark.postgres, pytest.mark.django_db]


@pytest.fixture
def record(portal_service: Sandbox) -> Account:
    return given.borrower(portal_service)


def iso_date_in(days: int) -> str:
    return (timezone.localdate() + timedelta(days=days)).isoformat()


def test_a_note_is_shown_on_the_borrower_page(servicer: Browser, record: Account) -> None:
    response = servicer.post(f"/notes/new/borrower/{record.uuid}/", {"text": "Prefers <b>mornings</b>"})
    assert (response.status_code, response["Location"]) == (303, f"/borrowers/{record.uuid}/")
    page = servicer.get(f"/borrowers/{record.uuid}/?tab=notes").content.decode()
    assert "Prefers &lt;b&gt;mornings&lt;/b&gt;" in page
    assert Entry.objects.filter(action="notes.add", subject_uuid=record.uuid).count() == 1


def test_a_pinned_note_is_shown_until_unpinned(servicer: Browser, record: Account) -> None:
    servicer.post(
        f"/notes/new/borrower/{record.uuid}/",
        {"text": "Talk to the controller", "pinned_until": iso_date_in(1)},
    )
    note = Note.objects.get()
    assert "Pinned by" in servicer.get(f"/borrowers/{record.uuid}/").content.decode()
    servicer.post(f"/notes/{note.pk}/unpin/")
    assert "Pinned by" not in servicer.get(f"/borrowers/{record.uuid}/").content.decode()


def test_a_pinned_note_is_shown_through_its_last_day(servicer: Browser, record: Account) -> None:
    typed = {"text": "Talk to the controller", "pinned_until": iso_date_in(0)}
    servicer.post(f"/notes/new/borrower/{record.uuid}/", typed)
    assert "Pinned by" in servicer.get(f"/borrowers/{record.uuid}/").content.decode()
    with time_machine.travel(timezone.now() + timedelta(days=1)):
        later = browser_of(Role.SERVICER).get(f"/borrowers/{record.uuid}/?tab=notes").content.decode()
    assert ("Talk to the controller" in later, "Pinned by" in later) == (True, False)


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        ({"text": ""}, "Enter the note"),
        ({"text": "x" * 2001}, "Up to 2,000"),
        ({"text": "x", "pinned_until": "2020-01-01"}, "Choose today or later"),
        ({"text": "x", "pinned_until": "2026-02-30"}, "That date doesn’t exist"),
        ({"text": "a\0b"}, "unreadable character"),
    ],
)
def test_an_invalid_note_is_rejected_with_a_reason(
    servicer: Browser, record: Account, sent: dict[str, str], reason: str
) -> None:
    response = servicer.post(f"/notes/new/borrower/{record.uuid}/", sent)
    assert response.status_code == 422
    assert reason in response.content.decode()
    assert not Note.objects.exists()


def test_a_pasted_tab_becomes_a_space(servicer: Browser, record: Account) -> None:
    servicer.post(f"/notes/new/borrower/{record.uuid}/", {"text": "Loan\t$25,000.00\tpast due"})
    assert Note.objects.get().text == "Loan $25,000.00 past due"


def test_a_follow_up_is_added_and_finished_once(servicer: Browser, record: Account) -> None:
    servicer.post(
        f"/notes/follow-ups/new/{record.uuid}/", {"title": "Call about the return", "due": iso_date_in(0)}
    )
    planned = FollowUp.objects.get()
    assert planned.is_due
    assert "Call about the return" in servicer.get(f"/borrowers/{record.uuid}/").content.decode()
    for _ in range(2):
        servicer.post(f"/notes/follow-ups/{planned.pk}/finish/")
    planned.refresh_from_db()
    assert not planned.is_due
    assert Entry.objects.filter(action="notes.finish").count() == 1


def test_a_viewer_cannot_add_notes_or_follow_ups(viewer: Browser, record: Account) -> None:
    assert viewer.post(f"/notes/new/borrower/{record.uuid}/", {"text": "x"}).status_code == 403
    assert viewer.post(f"/notes/follow-ups/new/{record.uuid}/", {"title": "x"}).status_code == 403
    assert not Note.objects.exists()


def test_the_title_of_a_note_names_its_record_within_a_sentence(
    servicer: Browser, portal_service: Sandbox, record: Account
) -> None:
    loan = given.loan(portal_service, record, amount="12345.00")
    Account.objects.filter(pk=loan.pk).update(label="Loan of $12,345.00")
    for one, title in ((loan, "Note on loan of $12,345.00"), (record, f"Note on {record}")):
        assert title in servicer.get(f"/notes/new/{one.kind}/{one.uuid}/").content.decode()
