"""An edit never overwrites changes that its user has not seen."""

import json
from typing import Any

import pytest
from django.test import Client as Browser

from portal.records import store
from portal.records.models import Account, Borrower, Kind, Source
from servicing.sandbox import Sandbox
from tests import given
from tests.portal.borrowers.editor import Editor, fields, html, html_of_error, sent, text

pytestmark = pytest.mark.postgres


def change_copy(record: Account, **changes: Any) -> Account:
    """Change the saved copy as another user's edit would."""
    return given.save_answer(json.loads(record.answer.body) | changes)


def test_a_stale_form_shows_all_three_values(
    editor: Editor, borrower: Borrower, portal_service: Sandbox
) -> None:
    form = editor.open()
    change_copy(borrower, email="theirs@bakery.example")
    page = html_of_error(editor.post(form | {"email": "mine@bakery.example"}, "preview"), 409)
    read = text(page)
    assert "office@harborstreetbakery.example" in read
    assert "theirs" in read
    assert "mine" in read
    assert not portal_service.calls


def test_a_field_changed_by_both_users_requires_a_choice(editor: Editor, borrower: Borrower) -> None:
    form = editor.open()
    change_copy(borrower, email="theirs@bakery.example")
    conflict = fields(html_of_error(editor.post(form | {"email": "mine@bakery.example"}, "preview"), 409))
    assert "choice-email" not in conflict
    assert "Choose a value for each field." in html_of_error(editor.post(conflict, "preview"), 409)


def test_choosing_my_value_sends_it(editor: Editor, borrower: Borrower, portal_service: Sandbox) -> None:
    form = editor.open()
    change_copy(borrower, email="theirs@bakery.example")
    conflict = fields(html(editor.post(form | {"email": "mine@bakery.example"}, "preview")))
    preview = editor.post(conflict | {"choice-email": "yours"}, "preview")
    editor.post(fields(html(preview)) | {"reason": ""}, "send")
    assert sent(portal_service) == {"email": "mine@bakery.example"}


def test_choosing_the_saved_value_leaves_it_unchanged(
    editor: Editor, borrower: Borrower, portal_service: Sandbox
) -> None:
    form = editor.open()
    change_copy(borrower, email="theirs@bakery.example")
    typed = {"email": "mine@bakery.example", "phone": "5125550143"}
    conflict = fields(html(editor.post(form | typed, "preview")))
    preview = editor.post(conflict | {"choice-email": "theirs"}, "preview")
    editor.post(fields(html(preview)) | {"reason": ""}, "send")
    assert sent(portal_service) == {"phone": "5125550143"}


def test_another_users_change_is_the_default_choice(
    editor: Editor, borrower: Borrower, portal_service: Sandbox
) -> None:
    form = editor.open()
    change_copy(borrower, address=json.loads(borrower.answer.body)["address"] | {"line_2": "Floor 2"})
    conflict = fields(html_of_error(editor.post(form | {"phone": "5125550143"}, "preview"), 409))
    assert (conflict["choice-address"], conflict["choice-phone"]) == ("theirs", "yours")
    editor.post(fields(html(editor.post(conflict, "preview"))) | {"reason": ""}, "send")
    assert sent(portal_service) == {"phone": "5125550143"}


def test_a_second_change_is_shown_again(editor: Editor, borrower: Borrower) -> None:
    form = editor.open()
    change_copy(borrower, email="theirs@bakery.example")
    conflict = fields(html(editor.post(form | {"email": "mine@bakery.example"}, "preview")))
    change_copy(borrower, email="again@bakery.example")
    page = html_of_error(editor.post(conflict | {"choice-email": "yours"}, "preview"), 409)
    assert "again" in text(page)


def test_a_change_after_the_review_is_not_overwritten(
    editor: Editor, borrower: Borrower, portal_service: Sandbox
) -> None:
    preview = editor.review_fields(email="mine@bakery.example")
    change_copy(borrower, email="theirs@bakery.example")
    html_of_error(editor.post(preview | {"reason": ""}, "send"), 409)
    assert not portal_service.calls


def test_a_change_to_a_read_only_field_is_no_conflict(editor: Editor, borrower: Borrower) -> None:
    form = editor.open()
    change_copy(borrower, website="https://bakery.example", industry="Food")
    assert editor.post(form | {"email": "mine@bakery.example"}, "preview").status_code == 200


def test_without_the_original_copy_every_difference_needs_a_choice(
    editor: Editor, borrower: Borrower, portal_service: Sandbox
) -> None:
    form = editor.open()
    change_copy(borrower, email="theirs@bakery.example").answer.snapshots.all().delete()
    conflict = fields(html_of_error(editor.post(form | {"phone": "5125550143"}, "preview"), 409))
    chosen = {"choice-email": "theirs", "choice-phone": "yours"}
    editor.post(fields(html(editor.post(conflict | chosen, "preview"))) | {"reason": ""}, "send")
    assert sent(portal_service) == {"phone": "5125550143"}


def test_a_newly_loaded_value_is_the_default_unless_typed(servicer: Browser, portal_service: Sandbox) -> None:
    user = portal_service.world.individual()
    item = store.Observation(kind=Kind.BORROWER, uuid=user["uuid"], borrower_uuid=user["uuid"], label="Maya")
    editor = Editor(servicer, store.save([item], source=Source.STAFF)[0])
    form = editor.open() | {"phone": "5125550143"}
    given.save_answer(user)
    conflict = fields(html_of_error(editor.post(form, "preview"), 409))
    assert conflict["choice-email"] == "theirs"
    assert "choice-phone" not in conflict
    preview = editor.post(conflict | {"choice-phone": "yours"}, "preview")
    editor.post(fields(html(preview)) | {"reason": ""}, "send")
    assert sent(portal_service) == {"phone": "5125550143"}
