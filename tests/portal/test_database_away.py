"""Tests of a locked database or a full disk: reads still work, and writes show an error."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from threading import Event, Thread, Timer

import pytest
from django.conf import LazySettings
from django.core.management import call_command
from django.db import connection
from django.test import Client as Browser
from django.utils import timezone

from portal.audit import view_log
from portal.audit.models import Actor, Entry, WriteIntent
from portal.audit.spool import VIEWS
from portal.messaging.models import Message
from portal.notes.models import Note
from portal.registry.models import Record
from portal.runtime import database
from portal.runtime.database import OPTIONAL_PAUSE_SECONDS, OPTIONAL_WAIT_SECONDS
from servicing.sandbox import Sandbox
from tests import databases, given
from tests.conftest import htmx
from tests.portal.home.test_index import unknown_write
from tests.portal.pages import allow_refresh, page, panel

# These tests mostly wait, so one worker runs them and leaves the other cores to busy tests.
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("waiting")]
LONGEST_SECONDS = 5


@contextmanager
def time_limit() -> Iterator[None]:
    start = time.monotonic()
    yield
    assert time.monotonic() - start < LONGEST_SECONDS


def lock_for(seconds: float, started: Callable[[], None] = lambda: None) -> None:
    """Lock the database for some seconds, as another program's long write does."""
    with databases.locked():
        started()
        time.sleep(seconds)


@pytest.fixture(autouse=True)
def data_folder(settings: LazySettings, tmp_path: Path) -> Iterator[None]:
    settings.DATA_DIR = tmp_path
    yield
    database._pause_ends_at = 0.0  # The next test's database accepts writes.


@pytest.fixture
def loan(portal_service: Sandbox, viewer: Browser, servicer: Browser) -> Record:
    """A loan whose views by both users are already recorded."""
    loan = given.loan(portal_service, given.borrower(portal_service), amount="12345.00")
    for browser in (viewer, servicer):
        panel(browser, loan.get_absolute_url(), "loan")
        page(browser, loan.get_absolute_url())
    allow_refresh(loan)
    return loan


@pytest.mark.parametrize("address", ["/", "/loans/", "/borrowers/", "/messages/", "/status/", "/repayments/"])
def test_pages_that_only_read_are_shown(viewer: Browser, loan: Record, address: str) -> None:
    with databases.locked(), time_limit():
        assert page(viewer, address)


def test_messages_that_cannot_be_saved_are_shown(viewer: Browser, portal_service: Sandbox) -> None:
    panel(viewer, "/messages/", "messages")
    uuid = portal_service.world.message("payment.succeeded", {"uuid": "p-1", "status": "SUCCEEDED"})["uuid"]
    with databases.locked(), time_limit():
        assert uuid in panel(viewer, "/messages/", "messages")
        assert not Message.objects.exists()
    time.sleep(OPTIONAL_PAUSE_SECONDS)  # Optional writes are skipped during the pause.
    assert uuid in panel(viewer, "/messages/", "messages")
    assert Message.objects.exists()
    with databases.locked(), time_limit():
        assert f"/messages/{uuid}/" in panel(viewer, "/messages/", "messages")


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL has many writers")
def test_a_short_write_does_not_count_as_a_locked_database(viewer: Browser, portal_service: Sandbox) -> None:
    panel(viewer, "/messages/", "messages")
    uuid = portal_service.world.message("payment.succeeded", {"uuid": "p-1", "status": "SUCCEEDED"})["uuid"]
    with databases.locked():
        panel(viewer, "/messages/", "messages")
    assert not Message.objects.exists()
    is_locked = Event()
    writer = Thread(target=lock_for, args=[0.05, is_locked.set])
    writer.start()
    is_locked.wait()
    assert uuid in panel(viewer, "/messages/", "messages")
    writer.join()
    assert Message.objects.exists()
    assert not database.accepts_no_writes()


def test_an_answer_is_saved_after_the_page_stopped_waiting(
    viewer: Browser, loan: Record, portal_service: Sandbox
) -> None:
    before = Record.objects.get(pk=loan.pk).checked_at
    portal_service.fail_next("*", delay=0.5, times=2)
    timer = Timer(0.4, lock_for, [OPTIONAL_WAIT_SECONDS + 0.5])
    timer.start()
    with time_limit():
        panel(viewer, loan.get_absolute_url(), "loan")
    timer.join()
    deadline = time.monotonic() + LONGEST_SECONDS
    while Record.objects.get(pk=loan.pk).checked_at == before and time.monotonic() < deadline:
        time.sleep(0.1)
    assert Record.objects.get(pk=loan.pk).checked_at != before


def test_a_page_with_a_recorded_view_is_shown_from_copies(viewer: Browser, loan: Record) -> None:
    with databases.locked(), time_limit():
        assert "12,345.00" in page(viewer, loan.get_absolute_url())
    with databases.locked(), time_limit():
        assert "12,345.00" in panel(viewer, loan.get_absolute_url(), "loan")
    assert "12,345.00" in panel(viewer, loan.get_absolute_url(), "loan")


def test_a_view_is_spooled_until_it_can_be_recorded(
    viewer: Browser, servicer: Browser, loan: Record, portal_service: Sandbox
) -> None:
    other, view_entries = given.borrower(portal_service), Entry.objects.filter(action="borrowers.detail")
    with databases.locked():
        for browser in (viewer, servicer):
            with time_limit():
                assert other.label in page(browser, other.get_absolute_url())
    assert VIEWS.path.stat().st_mode & 0o777 == 0o600
    with VIEWS.path.open("ab") as file:
        file.write(b'answer 90 1\n{"actor": {"name": "cut o')
    assert not view_entries.filter(subject_uuid=other.uuid).exists()
    database._pause_ends_at = 0.0  # As if the pause had passed.
    page(viewer, given.borrower(portal_service).get_absolute_url())
    entries = view_entries.filter(subject_uuid=other.uuid).order_by("id")
    assert list(entries.values_list("actor_name", flat=True)) == ["Viewer (viewer)", "Servicer (servicer)"]
    assert all("viewed_at" in entry.detail for entry in entries)
    assert view_log.replay_views() == 0
    call_command("verify_audit", verbosity=0)


@pytest.mark.parametrize("scripted", [True, False])
@pytest.mark.parametrize("kind", ["loan", "line", "borrower"])
def test_a_page_opened_for_the_first_time_is_shown(
    viewer: Browser, portal_service: Sandbox, kind: str, scripted: bool
) -> None:
    owner = given.borrower(portal_service)
    accounts = {"loan": given.loan(portal_service, owner), "line": given.line(portal_service, owner)}
    shown = accounts.get(kind, owner)
    page(viewer, "/")  # Creates the session.
    viewer.cookies["js"] = "1" if scripted else ""
    with databases.locked(), time_limit():
        assert owner.label in page(viewer, shown.get_absolute_url())
        assert owner.label in page(viewer, shown.get_absolute_url())
    database._pause_ends_at = 0.0
    assert owner.label in page(viewer, shown.get_absolute_url())


def test_home_is_shown_with_a_stale_write(viewer: Browser, loan: Record) -> None:
    write = unknown_write(Record.objects.get(uuid=loan.borrower_uuid), by="viewer")
    WriteIntent.objects.filter(pk=write.pk).update(
        state="sending", created_at=timezone.now() - timedelta(minutes=5)
    )
    with databases.locked(), time_limit():
        assert page(viewer, "/")


def test_many_first_views_do_not_each_wait(viewer: Browser, loan: Record, portal_service: Sandbox) -> None:
    def seconds_for(borrowers: list[Record]) -> float:
        start = time.monotonic()
        for one in borrowers:
            with time_limit():
                assert one.label in page(viewer, one.get_absolute_url())
        return time.monotonic() - start

    before, others = ([given.borrower(portal_service) for _ in range(12)] for _ in range(2))
    usual = seconds_for(before)
    with databases.locked():
        # Each waiting page would add a second.
        assert seconds_for(others) < usual + 2 * LONGEST_SECONDS
    assert view_log.replay_views() == len(others)
    recorded = Entry.objects.filter(action="borrowers.detail", actor_name="Viewer (viewer)")
    assert {other.uuid for other in others} <= set(recorded.values_list("subject_uuid", flat=True))


def test_a_replayed_view_is_recorded_only_once(viewer: Browser, loan: Record) -> None:
    actor, view_entries = (
        Actor.system("test"),
        Entry.objects.filter(action="loans.detail", actor_name="system"),
    )
    view_log.spool_view(actor, "loans.detail", {"subject_uuid": loan.uuid})
    spooled = VIEWS.path.read_bytes()
    view_log.replay_views()
    VIEWS.path.write_bytes(spooled)
    view_log.replay_views()
    assert view_entries.count() == 1


def test_a_page_whose_view_cannot_be_recorded_is_not_shown(
    viewer: Browser, portal_service: Sandbox, loan: Record
) -> None:
    other = given.borrower(portal_service)
    VIEWS.path.parent.write_text("no folder")
    with databases.locked(), time_limit():
        answer = viewer.get(other.get_absolute_url())
    assert (answer.status_code, answer["Retry-After"]) == (503, "10")
    assert "Nothing was changed." in answer.content.decode()
    assert other.label not in answer.content.decode()


def test_a_note_that_cannot_be_saved_shows_an_error(servicer: Browser, loan: Record) -> None:
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


def test_a_full_disk_rejects_writes_but_shows_pages(servicer: Browser, loan: Record) -> None:
    address, typed = f"/notes/new/loan/{loan.uuid}/", {"text": "Called the owner. " * 100}
    with databases.full():
        assert 503 in [servicer.post(address, typed).status_code for _ in range(5)]
        assert "12,345.00" in page(servicer, loan.get_absolute_url())
    assert servicer.post(address, typed).status_code < 400


def test_readyz_reports_whether_writes_are_possible(anonymous: Browser) -> None:
    with databases.locked(), time_limit():
        answer = anonymous.get("/readyz")
    assert answer.status_code == 200
    assert "writes: not possible" in answer.content.decode()
    time.sleep(OPTIONAL_PAUSE_SECONDS)
    assert "writes: ok" in anonymous.get("/readyz").content.decode()
