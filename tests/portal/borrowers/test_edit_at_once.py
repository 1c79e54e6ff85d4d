"""Concurrent edits of one record: only one is sent, and the newest write becomes the saved copy."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connections, transaction
from django.test import Client as Browser
from django.utils import timezone

from portal.audit.models import Actor, WriteIntent
from portal.audit.writes import Write, close_stale_writes, open_intent
from portal.gateway import client as gateway
from portal.records.models import Borrower, KeyPerson
from portal.records.store import saved_text
from servicing import Call
from servicing.sandbox import Sandbox
from tests import given
from tests.portal.borrowers.editor import UPDATE, Editor, fields, html, html_of_error

pytestmark = pytest.mark.postgres

STALE = timedelta(minutes=5)


@contextmanager
def during_write(send: Callable[[], Any], portal_service: Sandbox) -> Iterator[list[Any]]:
    """Run the block after the service received the write and before it answers."""
    answers: list[Any] = []

    def sender() -> None:
        answers.append(send())
        connections.close_all()

    calls_before, thread = len(portal_service.calls), threading.Thread(target=sender)
    thread.start()
    while len(portal_service.calls) == calls_before:
        threading.Event().wait(0.01)
    try:
        yield answers
    finally:
        thread.join()


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_concurrent_edit_is_rejected_and_keeps_its_input(
    servicer: Browser, supervisor: Browser, portal_service: Sandbox
) -> None:
    record = given.borrower(portal_service)
    first, second = Editor(servicer, record), Editor(supervisor, record)
    previews = (
        first.review_fields(email="first@bakery.example"),
        second.review_fields(email="second@bakery.example"),
    )
    portal_service.fail_next(UPDATE, delay=1.5)
    with during_write(lambda: first.post(previews[0] | {"reason": "One"}, "send"), portal_service):
        intent = WriteIntent.objects.get()
        page = html_of_error(second.post(previews[1] | {"reason": "Two"}, "send"), 409)
        assert intent.get_absolute_url() in page
        assert "Nothing was sent now." in page
        assert "second@bakery.example" in page
        assert intent.get_absolute_url() in html(supervisor.get(second.url))
    assert len(portal_service.calls) == 1
    # The saved copy has changed, so the second user must review again.
    assert second.post(fields(page) | {"reason": "Two"}, "send").status_code == 409
    assert second.send(email="second@bakery.example").status_code == 303
    assert portal_service.world.user(record.uuid)["email"] == "second@bakery.example"
    assert "second@bakery.example" in Borrower.objects.get(uuid=record.uuid).answer.body


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_key_person_and_borrower_can_be_edited_at_once(
    servicer: Browser, supervisor: Browser, portal_service: Sandbox
) -> None:
    """The borrower's answer has old data of the person, which must not replace their newer copy."""
    owner = given.borrower(portal_service)
    person = KeyPerson.objects.filter(borrower_uuid=owner.uuid).order_by("id")[0]
    old = list(portal_service.world.user(owner.uuid)["key_people"])
    owner_editor, person_editor = Editor(servicer, owner), Editor(supervisor, person)
    preview = owner_editor.review_fields(email="owner@bakery.example") | {"reason": "One"}
    portal_service.fail_next(UPDATE, delay=1.5, changes={"key_people": old})
    with during_write(lambda: owner_editor.post(preview, "send"), portal_service) as answers:
        assert person_editor.send(email="person@bakery.example").status_code == 303
    assert answers[0].status_code == 303
    assert "owner@bakery.example" in Borrower.objects.get(uuid=owner.uuid).answer.body
    assert "person@bakery.example" in saved_text(KeyPerson.objects.get(uuid=person.uuid))
    # Without a newer copy, the person is updated from the borrower's answer.
    changed = [one | {"email": "later@bakery.example"} for one in old]
    portal_service.fail_next(UPDATE, changes={"key_people": changed})
    owner_editor.send(line_2="Suite 4")
    assert "later@bakery.example" in saved_text(KeyPerson.objects.get(uuid=person.uuid))


@pytest.mark.slow
@pytest.mark.parametrize("way", ["lost", "crashed"])
def test_an_unknown_outcome_warns_but_does_not_block_edits(
    servicer: Browser, supervisor: Browser, portal_service: Sandbox, way: str
) -> None:
    record = given.borrower(portal_service)
    if way == "lost":
        portal_service.fail_next(UPDATE, cut_after_commit=True)
        Editor(servicer, record).send(email="lost@bakery.example")
    else:
        write = Write(submit_id="1", label="Crashed", subject_kind="borrower", subject_uuid=record.uuid)
        actor = Actor(name="Servicer (servicer)")
        call = Call(
            request_id="1",
            operation=UPDATE,
            kind="write",
            method="PUT",
            path="/",
            ids={},
            query={},
            body={"email": "lost"},
        )
        open_intent(write, actor, call)
        WriteIntent.objects.update(created_at=timezone.now() - STALE)
    intent, other = WriteIntent.objects.get(), Editor(supervisor, record)
    page = html(supervisor.get(other.url))
    assert "Unclear whether the change by Servicer (servicer) went through:" in page
    assert intent.get_absolute_url() in page
    assert other.send(line_2="Suite 4").status_code == 303


def test_the_database_allows_one_open_write_per_record(portal_service: Sandbox) -> None:
    intent = WriteIntent(submit_id="1", record_key="borrower:1")
    intent.save()
    with pytest.raises(IntegrityError), transaction.atomic():
        WriteIntent(submit_id="2", record_key="borrower:1").save()
    intent.state = WriteIntent.State.UNKNOWN
    intent.save()
    WriteIntent(submit_id="3", record_key="borrower:1").save()


def test_a_late_answer_does_not_replace_a_newer_one(servicer: Browser, portal_service: Sandbox) -> None:
    record = given.borrower(portal_service)

    def update(email: str, before_saving: Callable[[], Any]) -> None:
        write = Write(submit_id=email, label="Late", subject_kind="borrower", subject_uuid=record.uuid)
        watcher = gateway.Watcher(Actor.system("late"), write)
        gateway.client().with_watcher(DelayedWatcher(watcher, before_saving)).borrowers.update(
            record.uuid, email=email
        )

    def sleep() -> None:
        WriteIntent.objects.update(created_at=timezone.now() - STALE)
        close_stale_writes()
        update("second@bakery.example", lambda: None)

    update("first@bakery.example", sleep)
    first, second = WriteIntent.objects.order_by("created_at")
    assert (first.state, second.state) == ("confirmed", "confirmed")
    assert "second@bakery.example" in Borrower.objects.get(uuid=record.uuid).answer.body


class DelayedWatcher:
    """A watcher that sleeps between the answer and saving it."""

    def __init__(self, watcher: gateway.Watcher, sleep: Callable[[], Any]) -> None:
        self.watcher, self.sleep = watcher, sleep
        self.before = watcher.before

    def after(self, call: Any, outcome: Any) -> None:
        self.sleep()
        self.watcher.after(call, outcome)
