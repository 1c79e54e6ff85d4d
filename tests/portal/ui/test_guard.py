"""Free text with an EIN or SSN is rejected; other nine-digit numbers are confirmed once, on the record."""

import re
from html import unescape

import pytest
from django.test import Client as Browser

from portal.audit.models import Entry
from portal.notes.models import Note
from portal.ui.guard import QUESTION, REFUSAL
from servicing.sandbox import Sandbox
from tests import given
from tests.servicing.test_masking import NEAR_A_KEYWORD, SSN_OR_EIN

pytestmark = pytest.mark.django_db


@pytest.fixture
def address(portal_service: Sandbox) -> str:
    return f"/notes/new/borrower/{given.borrower(portal_service).uuid}/"


def submit_note(browser: Browser, address: str, text: str, **more: str) -> str:
    """Return the page with the form's errors, or an empty string if the note was added."""
    response = browser.post(address, {"text": text, **more})
    assert response.status_code in (303, 422)
    return unescape(response.content.decode()) if response.status_code == 422 else ""


@pytest.mark.slow
def test_an_ssn_or_ein_is_rejected_in_any_format(servicer: Browser, address: str) -> None:
    texts = [f"They gave {text} on the phone." for text in (*SSN_OR_EIN, *NEAR_A_KEYWORD)]
    assert [text for text in texts if REFUSAL not in submit_note(servicer, address, text)] == []
    assert not Note.objects.exists()


def test_amounts_phones_zip_codes_and_ids_are_accepted(servicer: Browser, address: str) -> None:
    texts = [
        *("Routing 021000021", "(512) 555-0143", "Austin, TX 78701-1234", "Asked for $250000000"),
        *("Paid 123456789.00", "3f2b8c1e-9d47-4a60-ab12-1234567abcde", "Sent 2026-11-22 9:15"),
        *("Call 2026-11-22 5125550143", "Loans of 12 and 1,234,567.00", "Unit 3, 512.555.0143"),
    ]
    assert [text for text in texts if submit_note(servicer, address, text)] == []
    assert [note.text for note in Note.objects.order_by("id")] == texts


def test_other_nine_digit_numbers_are_confirmed_once_for_everyone(
    servicer: Browser, supervisor: Browser, address: str
) -> None:
    text = "Wire reference 219099999"
    page = submit_note(servicer, address, text)
    assert QUESTION in page
    assert not Note.objects.exists()
    assert not Entry.objects.filter(action="accounts.keep_number").exists()
    (digests,) = re.findall(r'name="keep_number" value="([^"]+)"', page)
    assert submit_note(servicer, address, text, keep_number=digests) == ""
    entry = Entry.objects.get(action="accounts.keep_number")
    assert (entry.detail, entry.subject_uuid) == ({"field": "Note", "at": address}, digests)
    assert submit_note(supervisor, address, f"{text} again") == ""
    assert [note.text for note in Note.objects.order_by("id")] == [text, f"{text} again"]
    assert Entry.objects.filter(action="accounts.keep_number").count() == 1


def test_a_confirmation_covers_only_its_own_digits(servicer: Browser, address: str) -> None:
    (digests,) = re.findall(
        r'name="keep_number" value="([^"]+)"', submit_note(servicer, address, "No. 219099999")
    )
    assert QUESTION in submit_note(servicer, address, "No. 608395140", keep_number=digests)
    assert REFUSAL in submit_note(servicer, address, "SSN 219099999", keep_number=digests)
    assert not Note.objects.exists()
