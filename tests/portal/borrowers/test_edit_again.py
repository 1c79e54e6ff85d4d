"""A rejected, lost, repeated or expired edit is never sent twice and keeps its input."""

import re
import threading
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.conf import LazySettings
from django.db import connections
from django.test import Client as Browser
from django.utils import timezone

from portal.accounts.roles import Role
from portal.audit.models import WriteIntent
from portal.gateway import client as gateway
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import browser_of
from tests.portal.borrowers.editor import (
    TWICE,
    UPDATE,
    WITH_SSN,
    Editor,
    fields,
    html,
    html_of_error,
    phases,
    sent,
)


@pytest.mark.slow
def test_a_rejection_keeps_all_input_but_the_ssn(person_editor: Editor, portal_service: Sandbox) -> None:
    portal_service.fail_next(UPDATE, status=422, message="email belongs to somebody else")
    page = html_of_error(person_editor.send(TWICE, email="taken@maya.example", **WITH_SSN))
    assert "<q>email belongs to somebody else</q>" in page
    assert "Fix 1 field. Nothing was changed." in page
    assert "The service rejected this" in page
    expected = {"email": "taken@maya.example", "reason": "On the phone"} | WITH_SSN
    assert fields(page).items() >= expected.items()
    assert not re.search(r"\b2190", page)
    assert phases() == ["attempt", "outcome rejected"]


@pytest.mark.slow
def test_a_rejected_change_can_be_corrected_and_sent(editor: Editor, portal_service: Sandbox) -> None:
    portal_service.fail_next(UPDATE, status=400, message="no")
    form = fields(html_of_error(editor.send(email="taken@bakery.example")))
    preview = fields(html(editor.post(form | {"email": "free@bakery.example"}, "preview")))
    assert editor.post(preview | {"reason": ""}, "send").status_code == 303
    assert sent(portal_service) == {"email": "free@bakery.example"}


@pytest.mark.slow
def test_a_conflict_at_the_service_shows_409(editor: Editor, portal_service: Sandbox) -> None:
    portal_service.fail_next(UPDATE, status=409, message="changed while you were editing")
    assert "changed while you were editing" in html_of_error(editor.send(email="new@bakery.example"), 409)


def test_a_borrower_missing_at_the_service_is_not_found(servicer: Browser, portal_service: Sandbox) -> None:
    user = portal_service.world.borrower()
    record = given.save_answer(user)
    portal_service.reset()
    page = html_of_error(Editor(servicer, record).send(email="new@bakery.example"), 404)
    assert "Record not found at the service" in page


@pytest.mark.slow
def test_a_change_can_be_sent_after_an_outage(
    editor: Editor, portal_service: Sandbox, settings: LazySettings
) -> None:
    preview = editor.review_fields(email="new@bakery.example")
    settings.SERVICING_URL = "http://127.0.0.1:9"
    gateway.client.cache_clear()
    page = html_of_error(editor.post(preview | {"reason": "Called"}, "send"), 503)
    assert "Nothing was sent. The lending service can’t be reached: the connection was refused." in page
    assert "Called" in page
    settings.SERVICING_URL = portal_service.url
    gateway.client.cache_clear()
    assert editor.post(fields(page) | {"reason": "Called"}, "send").status_code == 303


@pytest.mark.slow
def test_resending_an_unknown_outcome_requires_confirmation(editor: Editor, portal_service: Sandbox) -> None:
    portal_service.fail_next(UPDATE, cut_after_commit=True)
    lost = editor.send(email="new@bakery.example")
    assert (lost.status_code, lost["Location"]) == (303, WriteIntent.objects.get().get_absolute_url())
    assert "Outcome unknown." in html(editor.browser.get(lost["Location"]))
    assert "Unclear whether the change by Servicer (servicer) went through:" in html(
        editor.browser.get(editor.url)
    )
    intent = WriteIntent.objects.get()
    assert intent.get_absolute_url() in html(editor.check(email="new@bakery.example"))
    assert "Confirm that you want to send it again." in html_of_error(editor.send(email="new@bakery.example"))
    assert phases() == ["attempt", "outcome unknown"]
    assert editor.send({"again": "on"}, email="new@bakery.example").status_code == 303
    assert phases() == ["attempt", "outcome unknown", "attempt", "outcome confirmed"]


@pytest.mark.slow
def test_another_field_is_sent_without_confirmation(editor: Editor, portal_service: Sandbox) -> None:
    portal_service.fail_next(UPDATE, cut_after_commit=True)
    editor.send(email="new@bakery.example")
    assert editor.send(line_2="Suite 4").status_code == 303


@pytest.mark.slow
def test_two_clicks_send_once(editor: Editor, portal_service: Sandbox) -> None:
    preview = editor.review_fields(email="new@bakery.example") | {"reason": ""}
    first, second = (editor.post(preview, "send") for _ in range(2))
    assert first["Location"] == second["Location"]
    assert len(portal_service.calls) == 1


def test_a_second_click_shows_the_unknown_outcome(editor: Editor, portal_service: Sandbox) -> None:
    preview = editor.review_fields(email="new@bakery.example") | {"reason": ""}
    portal_service.fail_next(UPDATE, cut_after_commit=True)
    editor.post(preview, "send")
    page = html(editor.browser.get(editor.post(preview, "send")["Location"]))
    assert "Outcome unknown" in page
    assert len(portal_service.calls) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("state", "words"),
    [("sending", "Being sent"), ("rejected", "rejected this"), ("not_sent", "Nothing was sent")],
)
def test_result_shows_each_unconfirmed_state(editor: Editor, state: str, words: str) -> None:
    url = editor.send(email="new@bakery.example")["Location"]
    WriteIntent.objects.update(state=state)
    assert words in html(editor.browser.get(url))


@pytest.mark.slow
def test_a_submit_id_used_for_another_record_is_rejected(
    editor: Editor, person_editor: Editor, portal_service: Sandbox
) -> None:
    used = editor.review_fields(email="new@bakery.example") | {"reason": ""}
    editor.post(used, "send")
    other = person_editor.review_fields(email="new@maya.example") | {"submit_id": used["submit_id"]}
    assert "Already sent" in html_of_error(person_editor.post(other, "send"), 409)
    assert len(portal_service.calls) == 1


@pytest.mark.slow
@pytest.mark.parametrize("proposal", ["", "x", "x:y:z", "\0", b"\xed\xa0\x80"])
def test_an_unreadable_review_is_not_sent(editor: Editor, portal_service: Sandbox, proposal: Any) -> None:
    page = html_of_error(editor.send({"proposal": proposal}, email="new@bakery.example"))
    assert "The review couldn’t be read" in page
    assert not portal_service.calls


@pytest.mark.slow
def test_a_review_is_valid_only_for_its_user_and_record(
    editor: Editor, person_editor: Editor, supervisor: Browser, portal_service: Sandbox
) -> None:
    preview = editor.review_fields(email="new@bakery.example") | {"reason": ""}
    html_of_error(person_editor.post(preview, "send"))
    html_of_error(supervisor.post(editor.url, preview | {"action": "send"}))
    assert not portal_service.calls


@pytest.mark.slow
def test_a_review_expires_after_15_minutes(editor: Editor, portal_service: Sandbox) -> None:
    preview = editor.review_fields(email="new@bakery.example") | {"reason": ""}
    with time_machine.travel(timezone.now() + timedelta(minutes=15, seconds=2)):
        page = html_of_error(editor.post(preview, "send"))
        assert "expired after 15 minutes" in page
        assert not portal_service.calls
        assert editor.post(fields(page) | {"reason": ""}, "send").status_code == 303


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_simultaneous_clicks_send_once(editor: Editor, portal_service: Sandbox) -> None:
    preview = editor.review_fields(email="new@bakery.example") | {"reason": ""}
    portal_service.fail_next(UPDATE, delay=0.5, times=None)
    barrier = threading.Barrier(2)
    locations: list[str] = []

    def click(clicker: Editor) -> None:
        barrier.wait()
        locations.append(clicker.post(preview, "send")["Location"])
        connections.close_all()

    clickers = [Editor(browser_of(Role.SERVICER), editor.record) for _ in range(2)]
    threads = [threading.Thread(target=click, args=[each]) for each in clickers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(set(locations)), len(portal_service.calls)) == (1, 1)
    assert phases() == ["attempt", "outcome confirmed"]


@pytest.mark.slow
@pytest.mark.parametrize("step", ["preview", "send"])
def test_an_error_from_the_client_library_returns_to_the_form(
    editor: Editor, portal_service: Sandbox, settings: LazySettings, step: str
) -> None:
    form, preview = editor.open() | {"city": "Springfield"}, editor.review_fields(city="Springfield")
    settings.SERVICING_COUNTRY = "USA"
    page = html_of_error(editor.post({"preview": form, "send": preview | {"reason": "Moved"}}[step], step))
    assert "The country must be written" in page
    assert not portal_service.calls
