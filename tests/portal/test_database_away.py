"""A locked database or a full disk: a short page says so, and that nothing was sent."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.test import Client as Browser

from portal.audit.models import Entry, WriteIntent
from portal.notes.models import Note
from portal.records.models import Account, Borrower
from servicing.sandbox import Sandbox
from tests import databases, given
from tests.conftest import htmx
from tests.portal.borrowers.editor import Editor
from tests.portal.pages import page, visible_text

# These tests mostly wait, so one worker runs them and leaves the other cores to busy tests.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.postgres,
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.xdist_group("waiting"),
]
LONGEST_SECONDS = 8


@contextmanager
def time_limit() -> Iterator[None]:
    start = time.monotonic()
    yield
    assert time.monotonic() - start < LONGEST_SECONDS


@pytest.fixture(autouse=True)
def show_failures(viewer: Browser, servicer: Browser) -> None:
    """Let failures of middleware become the page that a person gets."""
    viewer.raise_request_exception = servicer.raise_request_exception = False


@pytest.fixture
def loan(portal_service: Sandbox) -> Account:
    return given.loan(portal_service, given.borrower(portal_service), amount="12345.00")


@pytest.mark.parametrize("address", ["/", "/loans/", "/borrowers/", "/status/"])
def test_a_page_whose_view_cannot_be_recorded_is_not_shown(
    viewer: Browser, loan: Account, address: str
) -> None:
    with databases.locked(), time_limit():
        answer = viewer.get(address)
    assert (answer.status_code, answer["Retry-After"]) == (503, "10")
    shown = visible_text(answer.content.decode())
    assert "The database isn’t available right now This page can’t be shown. Nothing was changed." in shown
    assert not Entry.objects.exists()
    assert page(viewer, address)


def test_the_page_of_a_record_is_not_shown_without_its_view(viewer: Browser, loan: Account) -> None:
    borrower = Borrower.objects.get(uuid=loan.borrower_uuid)
    with databases.locked(), time_limit():
        answer = viewer.get(borrower.get_absolute_url())
    assert answer.status_code == 503
    assert borrower.name not in answer.content.decode()
    assert borrower.label in page(viewer, borrower.get_absolute_url())


def test_a_note_that_cannot_be_saved_shows_an_error(servicer: Browser, loan: Account) -> None:
    address, typed = f"/notes/new/loan/{loan.uuid}/", {"text": "Called the owner."}
    with databases.locked(), time_limit():
        answer = servicer.post(address, typed)
    assert answer.status_code == 503
    assert "Nothing was sent to the lending service." in answer.content.decode()
    with databases.locked(), time_limit():
        notice = servicer.post(address, typed, headers=htmx("notes")).content.decode()
    assert notice.strip().startswith("<section")
    assert not Note.objects.exists()
    assert servicer.post(address, typed).status_code < 400


def test_a_change_that_cannot_be_recorded_is_not_sent(servicer: Browser, portal_service: Sandbox) -> None:
    editor = Editor(servicer, given.borrower(portal_service))
    review = editor.review_fields(email="new@bakery.example") | {"reason": ""}
    with databases.locked():
        answer = editor.post(review, "send")
    assert answer.status_code == 503
    assert "Nothing was sent to the lending service." in answer.content.decode()
    assert (WriteIntent.objects.count(), portal_service.calls) == (0, [])
    assert editor.post(review, "send").status_code == 303


def test_a_full_disk_rejects_writes(servicer: Browser, loan: Account) -> None:
    address, typed = f"/notes/new/loan/{loan.uuid}/", {"text": "Called the owner. " * 100}
    with databases.full():
        assert 503 in [servicer.post(address, typed).status_code for _ in range(5)]
    assert servicer.post(address, typed).status_code < 400
