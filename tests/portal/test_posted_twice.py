"""A form that saves something here saves it once, however often and however fast it is posted."""

import re
import threading
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connections
from django.test import Client as Browser
from django.urls import reverse

from portal.accounts.roles import Role
from portal.audit.models import Actor, Entry
from portal.collections.models import Contact, Promise
from portal.core.business_date import business_date
from portal.gateway import reading
from portal.jobs.models import Job
from portal.lookup.models import Upload
from portal.notes.models import FollowUp, Note
from portal.records.models import Account, Borrower
from portal.tables.models import SavedView
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import browser_of

pytestmark = [pytest.mark.postgres, pytest.mark.django_db(transaction=True)]
TIMES = 6


def form_id(browser: Browser, address: str) -> str:
    """Return the save ID of the form at an address."""
    page = browser.get(address).content.decode()
    (found,) = re.findall(r'name="save_id" value="([^"]+)"', page)[-1:]
    return str(found)


def post_at_once(browser: Browser, address: str, typed: dict[str, Any]) -> list[int]:
    """Post the same form several times at the same moment, and return the status codes."""
    barrier, codes = threading.Barrier(TIMES), []

    def post() -> None:
        own = Browser()
        own.cookies = browser.cookies
        barrier.wait()
        values = {
            name: SimpleUploadedFile(value.name, value.content) if isinstance(value, File) else value
            for name, value in typed.items()
        }
        codes.append(own.post(address, values).status_code)
        connections.close_all()

    threads = [threading.Thread(target=post) for _ in range(TIMES)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    return sorted(codes)


class File:
    def __init__(self, name: str, content: bytes) -> None:
        self.name, self.content = name, content


@pytest.fixture
def owner(portal_service: Sandbox) -> Borrower:
    return given.borrower(portal_service)


def subject_url(name: str, record: Account) -> str:
    return reverse(name, args=[record.kind, record.uuid])


@pytest.mark.slow
def test_a_note_is_saved_once(owner: Borrower) -> None:
    servicer, address = browser_of(Role.SERVICER), subject_url("notes:add", owner)
    typed = {"text": "Called about the wire.", "save_id": form_id(servicer, address)}
    assert post_at_once(servicer, address, typed) == [303] * TIMES
    assert Note.objects.count() == Entry.objects.filter(action="notes.add").count() == 1
    typed["save_id"] = form_id(servicer, address)  # The same words in another form are another note.
    assert servicer.post(address, typed).status_code == 303
    assert Note.objects.count() == 2


def test_a_follow_up_is_saved_once(owner: Borrower) -> None:
    servicer, address = browser_of(Role.SERVICER), reverse("notes:add_follow_up", args=[owner.uuid])
    typed = {"title": "Call back", "due": str(business_date()), "save_id": form_id(servicer, address)}
    assert post_at_once(servicer, address, typed) == [303] * TIMES
    assert FollowUp.objects.count() == 1


@pytest.mark.slow
def test_a_contact_with_its_promise_and_follow_up_is_saved_once(
    portal_service: Sandbox, owner: Borrower
) -> None:
    loan, servicer = given.loan(portal_service, owner), browser_of(Role.SERVICER)
    for copy in reading.account_copies(loan):
        reading.read_live(Actor(name="Maya Chen"), copy)
    address = subject_url("collections:contacts", loan)
    tomorrow = str(business_date() + timedelta(days=1))
    typed = {
        "person": "Someone else",
        "channel": "phone",
        "outcome": "promised",
        "seen": "0",
        "amount": "75.00",
        "day": tomorrow,
        "next_action": "Check",
        "next_on": tomorrow,
        "save_id": form_id(servicer, address),
    }
    assert post_at_once(servicer, f"{address}log/", typed) == [303] * TIMES
    assert (Contact.objects.count(), Promise.objects.count(), FollowUp.objects.count()) == (1, 1, 1)


def test_a_view_is_saved_once(owner: Borrower) -> None:
    viewer, address = browser_of(Role.VIEWER), f"{reverse('saved_views:save')}?list=loans:index"
    typed = {"name": "Mine", "list": "loans:index", "query": "", "save_id": form_id(viewer, address)}
    assert post_at_once(viewer, address, typed) == [303] * TIMES
    assert SavedView.objects.count() == Entry.objects.filter(action="saved_views.save").count() == 1


@pytest.mark.slow
def test_a_file_is_imported_once(owner: Borrower) -> None:
    supervisor, address = browser_of(Role.SUPERVISOR), reverse("lookup:import_records")
    file = File("ids.csv", b"kind,uuid,borrower_uuid,label\nborrower,b-77,,Acme\n")
    typed = {"ids": file, "exported_on": str(business_date()), "save_id": form_id(supervisor, address)}
    assert post_at_once(supervisor, address, typed) == [303] * TIMES
    assert Upload.objects.count() == Job.objects.filter(name="lookup.import_file").count() == 1


@pytest.mark.slow
def test_a_record_is_archived_and_corrected_once(owner: Borrower) -> None:
    supervisor = browser_of(Role.SUPERVISOR)
    for name, act, typed in (
        ("lookup:correct", "lookup.correct", {"label": "Northwind Two LLC", "reason": "Renamed"}),
        ("lookup:archive", "lookup.archive", {"act": "archive", "reason": "Sold"}),
    ):
        address = subject_url(name, owner)
        codes = post_at_once(supervisor, address, typed | {"save_id": form_id(supervisor, address)})
        assert codes == [303] * TIMES
        assert Entry.objects.filter(action=act).count() == 1


@pytest.mark.slow
def test_a_repeated_post_elsewhere_says_that_it_is_saved(owner: Borrower) -> None:
    servicer, address = browser_of(Role.SERVICER), subject_url("notes:add", owner)
    save_id = form_id(servicer, address)
    servicer.post(address, {"text": "Once.", "pinned_until": str(business_date()), "save_id": save_id})
    unpin = reverse("notes:unpin", args=[Note.objects.get().pk])
    back = f"http://testserver{owner.get_absolute_url()}"
    answers = [
        servicer.post(unpin, {"save_id": save_id.replace("4", "5", 1)}, headers={"Referer": back})
        for _ in range(2)
    ]
    assert [one.status_code for one in answers] == [303, 303]
    assert answers[1]["Location"].removeprefix("http://testserver") == owner.get_absolute_url()
    assert "Already saved." in servicer.get(owner.get_absolute_url()).content.decode()
    assert Entry.objects.filter(action="notes.unpin").count() == 1


def test_a_snooze_posted_again_leads_home(portal_service: Sandbox, owner: Borrower) -> None:
    servicer, loan = browser_of(Role.SERVICER), given.line(portal_service, owner, past_due_balance="90.00")
    for copy in reading.account_copies(loan):
        reading.read_live(Actor(name="Maya Chen"), copy)
    address = f"{reverse('home:snooze')}?item=line:{loan.uuid}"
    tomorrow = str(business_date() + timedelta(days=1))
    typed = {"until": tomorrow, "reason": "They pay on Friday", "save_id": form_id(servicer, address)}
    answers = [servicer.post(address, typed) for _ in range(2)]
    assert [(one.status_code, one["Location"]) for one in answers] == [(303, "/")] * 2
    assert Entry.objects.filter(action="home.snooze").count() == 1


@pytest.mark.slow
def test_other_words_in_a_form_that_is_saved_are_not_said_to_be_added(owner: Borrower) -> None:
    servicer, address = browser_of(Role.SERVICER), subject_url("notes:add", owner)
    save_id = form_id(servicer, address)
    servicer.post(address, {"text": "Called.", "save_id": save_id})
    servicer.get(owner.get_absolute_url())
    servicer.post(address, {"text": "Called twice.", "save_id": save_id})
    shown = servicer.get(owner.get_absolute_url()).content.decode()
    assert "Already saved." in shown
    assert "Note added." not in shown


def test_a_form_can_be_corrected_and_posted_again(owner: Borrower) -> None:
    servicer, address = browser_of(Role.SERVICER), subject_url("notes:add", owner)
    save_id = str(uuid4())  # The page isn't read before, so the rejected post is its first view.
    assert servicer.post(address, {"text": "", "save_id": save_id}).status_code == 422
    assert servicer.post(address, {"text": "Called.", "save_id": save_id}).status_code == 303
    assert [one.text for one in Note.objects.all()] == ["Called."]


def test_a_form_that_was_denied_can_be_posted_with_another_role(owner: Borrower) -> None:
    viewer, address = browser_of(Role.VIEWER), subject_url("notes:add", owner)
    typed = {"text": "Called.", "save_id": str(uuid4())}
    assert viewer.post(address, typed).status_code == 403
    assert browser_of(Role.SERVICER).post(address, typed).status_code == 303
    assert [one.text for one in Note.objects.all()] == ["Called."]


@pytest.mark.parametrize("save_id", ["", "x", "1" * 2000, "\0"])
def test_a_form_without_a_usable_id_is_saved_each_time(owner: Borrower, save_id: str) -> None:
    servicer, address = browser_of(Role.SERVICER), subject_url("notes:add", owner)
    for _ in range(2):
        assert servicer.post(address, {"text": "Twice.", "save_id": save_id}).status_code == 303
    assert Note.objects.count() == 2
