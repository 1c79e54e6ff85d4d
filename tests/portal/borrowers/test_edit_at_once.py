"""Two people change one record at the same moment: one is sent, and the copy is that of the write that began last."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import IntegrityError, connections, transaction
from django.test import Client as Browser
from django.utils import timezone

from portal import gateway
from portal.audit.models import Actor, WriteIntent
from portal.audit.writes import Write, close_stale_writes, open_intent
from portal.registry.models import Kind, Record
from servicing.sandbox import Sandbox
from tests import given
from tests.portal.borrowers.editor import UPDATE, Editor, fields, html, is_refused

STALE = timedelta(minutes=5)


@pytest.fixture(autouse=True)
def nothing_waits(settings: LazySettings) -> None:
    settings.APPROVAL_ACTS = []


@contextmanager
def in_the_middle_of(send: Callable[[], Any], portal_service: Sandbox) -> Iterator[list[Any]]:
    """A block that runs while the service has a write and has not answered it yet."""
    answers: list[Any] = []

    def sender() -> None:
        answers.append(send())
        connections.close_all()

    before, thread = len(portal_service.calls), threading.Thread(target=sender)
    thread.start()
    while len(portal_service.calls) == before:
        threading.Event().wait(0.01)
    try:
        yield answers
    finally:
        thread.join()


@pytest.mark.django_db(transaction=True)
def test_the_second_of_two_is_refused_with_a_link_and_keeps_what_was_typed(
    servicer: Browser, supervisor: Browser, portal_service: Sandbox
) -> None:
    record = given.borrower(portal_service)
    first, second = Editor(servicer, record), Editor(supervisor, record)
    previews = first.checked(email="first@bakery.example"), second.checked(email="second@bakery.example")
    portal_service.fail_next(UPDATE, delay=1.5)
    with in_the_middle_of(lambda: first.post(previews[0] | {"reason": "One"}, "send"), portal_service):
        intent = WriteIntent.objects.get()
        page = is_refused(second.post(previews[1] | {"reason": "Two"}, "send"), 409)
        assert intent.get_absolute_url() in page
        assert "Nothing was sent now." in page
        assert "second@bakery.example" in page
        assert intent.get_absolute_url() in html(supervisor.get(second.url))
    assert len(portal_service.calls) == 1
    # The copy has moved, so the second one looks again.
    assert second.post(fields(page) | {"reason": "Two"}, "send").status_code == 409
    assert second.send(email="second@bakery.example").status_code == 303
    assert portal_service.world.user(record.uuid)["email"] == "second@bakery.example"
    assert "second@bakery.example" in Record.objects.get(uuid=record.uuid).answer


@pytest.mark.django_db(transaction=True)
def test_a_person_and_their_borrower_are_separate_records(
    servicer: Browser, supervisor: Browser, portal_service: Sandbox
) -> None:
    """The borrower's answer holds the person as they were: their own newer copy stays."""
    owner = given.borrower(portal_service)
    person = Record.objects.filter(kind=Kind.KEY_PERSON, borrower_uuid=owner.uuid).order_by("id")[0]
    old = list(portal_service.world.user(owner.uuid)["key_people"])
    of_owner, of_person = Editor(servicer, owner), Editor(supervisor, person)
    preview = of_owner.checked(email="owner@bakery.example") | {"reason": "One"}
    portal_service.fail_next(UPDATE, delay=1.5, changes={"key_people": old})
    with in_the_middle_of(lambda: of_owner.post(preview, "send"), portal_service) as answers:
        assert of_person.send(email="person@bakery.example").status_code == 303
    assert answers[0].status_code == 303
    assert "owner@bakery.example" in Record.objects.get(uuid=owner.uuid).answer
    assert "person@bakery.example" in Record.objects.get(uuid=person.uuid).answer
    # A person who was not changed in between is as the borrower's answer says.
    renamed = [one | {"email": "later@bakery.example"} for one in old]
    portal_service.fail_next(UPDATE, changes={"key_people": renamed})
    of_owner.send(line_2="Suite 4")
    assert "later@bakery.example" in Record.objects.get(uuid=person.uuid).answer


@pytest.mark.parametrize("way", ["lost", "crashed"])
def test_a_write_without_an_answer_frees_its_record_and_is_named(
    servicer: Browser, supervisor: Browser, portal_service: Sandbox, way: str
) -> None:
    record = given.borrower(portal_service)
    if way == "lost":
        portal_service.fail_next(UPDATE, cut_after_commit=True)
        Editor(servicer, record).send(email="lost@bakery.example")
    else:
        write = Write(submit_id="1", label="Crashed", subject_kind="borrower", subject_uuid=record.uuid)
        actor = Actor(name="Servicer (servicer)")
        open_intent(write, actor, operation=UPDATE, method="PUT", path="/", body={"email": "lost"})
        WriteIntent.objects.update(created_at=timezone.now() - STALE)
    lost, other = WriteIntent.objects.get(), Editor(supervisor, record)
    page = html(supervisor.get(other.url))
    assert "Unclear whether the change by Servicer (servicer) went through:" in page
    assert lost.get_absolute_url() in page
    assert other.send(line_2="Suite 4").status_code == 303


def test_the_database_itself_takes_one_write_to_a_record(portal_service: Sandbox) -> None:
    intent = WriteIntent(submit_id="1", record_key="borrower:1")
    intent.save()
    with pytest.raises(IntegrityError), transaction.atomic():
        WriteIntent(submit_id="2", record_key="borrower:1").save()
    intent.state = WriteIntent.State.UNKNOWN
    intent.save()
    WriteIntent(submit_id="3", record_key="borrower:1").save()


def test_a_late_answer_does_not_replace_that_of_a_write_that_began_after_it(
    servicer: Browser, portal_service: Sandbox
) -> None:
    record = given.borrower(portal_service)

    def update(email: str, before: Callable[[], Any]) -> None:
        write = Write(submit_id=email, label="Late", subject_kind="borrower", subject_uuid=record.uuid)
        watcher = gateway.Watcher(Actor.system("late"), write)
        gateway.client().with_watcher(Sleeper(watcher, before)).borrowers.update(record.uuid, email=email)

    def sleep() -> None:
        WriteIntent.objects.update(created_at=timezone.now() - STALE)
        close_stale_writes()
        update("second@bakery.example", lambda: None)

    update("first@bakery.example", sleep)
    first, second = WriteIntent.objects.order_by("created_at")
    assert (first.state, second.state) == ("confirmed", "confirmed")
    assert "second@bakery.example" in Record.objects.get(uuid=record.uuid).answer


class Sleeper:
    """A process that sleeps between its answer and the recording of it."""

    def __init__(self, watcher: gateway.Watcher, sleep: Callable[[], Any]) -> None:
        self.watcher, self.sleep = watcher, sleep
        self.before = watcher.before

    def after(self, call: Any, outcome: Any) -> None:
        self.sleep()
        self.watcher.after(call, outcome)
