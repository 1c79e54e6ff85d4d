"""An edit whose copy moved meanwhile overwrites nothing unseen."""

import json
from typing import Any

from django.test import Client as Browser

from portal.registry import store
from portal.registry.models import Kind, Record, Source
from servicing.sandbox import Sandbox
from tests import given
from tests.portal.borrowers.editor import Editor, fields, html, is_refused, sent, text


def moved(record: Record, **changes: Any) -> Record:
    """The copy as another person's change leaves it."""
    return given.save_answer(json.loads(record.answer) | changes)


def test_a_stale_form_is_refused_with_all_three_values(
    editor: Editor, borrower: Record, portal_service: Sandbox
) -> None:
    form = editor.open()
    moved(borrower, email="theirs@bakery.example")
    page = is_refused(editor.post(form | {"email": "mine@bakery.example"}, "preview"), 409)
    read = text(page)
    assert "office@harborstreetbakery.example" in read
    assert "theirs" in read
    assert "mine" in read
    assert not portal_service.calls


def test_a_value_that_both_changed_waits_for_a_decision(editor: Editor, borrower: Record) -> None:
    form = editor.open()
    moved(borrower, email="theirs@bakery.example")
    clash = fields(is_refused(editor.post(form | {"email": "mine@bakery.example"}, "preview"), 409))
    assert "choice-email" not in clash
    assert "Choose a value for each field." in is_refused(editor.post(clash, "preview"), 409)


def test_mine_is_sent_when_i_say_so(editor: Editor, borrower: Record, portal_service: Sandbox) -> None:
    form = editor.open()
    moved(borrower, email="theirs@bakery.example")
    clash = fields(html(editor.post(form | {"email": "mine@bakery.example"}, "preview")))
    preview = editor.post(clash | {"choice-email": "yours"}, "preview")
    editor.post(fields(html(preview)) | {"reason": ""}, "send")
    assert sent(portal_service) == {"email": "mine@bakery.example"}


def test_theirs_stays_when_i_say_so(editor: Editor, borrower: Record, portal_service: Sandbox) -> None:
    form = editor.open()
    moved(borrower, email="theirs@bakery.example")
    typed = {"email": "mine@bakery.example", "phone": "5125550143"}
    clash = fields(html(editor.post(form | typed, "preview")))
    preview = editor.post(clash | {"choice-email": "theirs"}, "preview")
    editor.post(fields(html(preview)) | {"reason": ""}, "send")
    assert sent(portal_service) == {"phone": "5125550143"}


def test_what_only_they_changed_stays_by_default(
    editor: Editor, borrower: Record, portal_service: Sandbox
) -> None:
    form = editor.open()
    moved(borrower, address=json.loads(borrower.answer)["address"] | {"line_2": "Floor 2"})
    clash = fields(is_refused(editor.post(form | {"phone": "5125550143"}, "preview"), 409))
    assert (clash["choice-address"], clash["choice-phone"]) == ("theirs", "yours")
    editor.post(fields(html(editor.post(clash, "preview"))) | {"reason": ""}, "send")
    assert sent(portal_service) == {"phone": "5125550143"}


def test_a_copy_that_moves_again_is_shown_again(editor: Editor, borrower: Record) -> None:
    form = editor.open()
    moved(borrower, email="theirs@bakery.example")
    clash = fields(html(editor.post(form | {"email": "mine@bakery.example"}, "preview")))
    moved(borrower, email="again@bakery.example")
    page = is_refused(editor.post(clash | {"choice-email": "yours"}, "preview"), 409)
    assert "again" in text(page)


def test_a_copy_that_moved_after_the_check_is_not_overwritten(
    editor: Editor, borrower: Record, portal_service: Sandbox
) -> None:
    preview = editor.checked(email="mine@bakery.example")
    moved(borrower, email="theirs@bakery.example")
    is_refused(editor.post(preview | {"reason": ""}, "send"), 409)
    assert not portal_service.calls


def test_what_cannot_be_edited_is_no_conflict(editor: Editor, borrower: Record) -> None:
    form = editor.open()
    moved(borrower, website="https://bakery.example", industry="Food")
    assert editor.post(form | {"email": "mine@bakery.example"}, "preview").status_code == 200


def test_a_copy_that_is_not_kept_any_more_asks_for_every_difference(
    editor: Editor, borrower: Record, portal_service: Sandbox
) -> None:
    form = editor.open()
    moved(borrower, email="theirs@bakery.example").snapshots.all().delete()
    clash = fields(is_refused(editor.post(form | {"phone": "5125550143"}, "preview"), 409))
    chosen = {"choice-email": "theirs", "choice-phone": "yours"}
    editor.post(fields(html(editor.post(clash | chosen, "preview"))) | {"reason": ""}, "send")
    assert sent(portal_service) == {"phone": "5125550143"}


def test_what_became_known_meanwhile_stays_unless_it_was_typed(
    servicer: Browser, portal_service: Sandbox
) -> None:
    user = portal_service.world.individual()
    item = store.Observation(kind=Kind.BORROWER, uuid=user["uuid"], borrower_uuid=user["uuid"], label="Maya")
    editor = Editor(servicer, store.save([item], source=Source.STAFF)[0])
    form = editor.open() | {"phone": "5125550143"}
    given.save_answer(user)
    clash = fields(is_refused(editor.post(form, "preview"), 409))
    assert clash["choice-email"] == "theirs"
    assert "choice-phone" not in clash
    preview = editor.post(clash | {"choice-phone": "yours"}, "preview")
    editor.post(fields(html(preview)) | {"reason": ""}, "send")
    assert sent(portal_service) == {"phone": "5125550143"}
