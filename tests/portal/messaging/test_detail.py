"""One message: its payload is shown safely, and secrets in it are hidden."""

import json
from typing import Any

import pytest
from django.test import Client as Browser

from portal.messaging.models import Message
from servicing.sandbox import Sandbox
from tests.conftest import htmx

pytestmark = pytest.mark.slow

TABS = ("readable", "json", "raw", "related")
ACCOUNT = "7d1f60c2-8a55-4e0e-9f0b-3a5c1e2d4b66"
SECRETS = ("219-09-9999", "98-7654321", "1980/02/29")


def read_pages(browser: Browser, uuid: str, tab: str) -> list[str]:
    """Return the list with the message beside it, and the message's own page."""
    beside = browser.get(f"/messages/?message={uuid}&tab={tab}", headers=htmx("messages"))
    alone = browser.get(f"/messages/{uuid}/?tab={tab}")
    assert (beside.status_code, alone.status_code) == (200, 200)
    return [beside.content.decode(), alone.content.decode()]


@pytest.mark.parametrize(
    "payload",
    [
        "x" * 5_000_000,
        {"amount": "<script>alert(1)</script>", "uuid": 7, "status": ["odd"]},
        {"uuid": "\u202egnp.exe\u0000", "status": "\x00"},
        ["odd", None],
        None,
    ],
    ids=["5 MB", "script", "marks", "list", "none"],
)
def test_a_payload_of_any_shape_is_shown_safely(
    viewer: Browser, portal_service: Sandbox, payload: Any
) -> None:
    uuid = portal_service.world.message("payment.succeeded", payload)["uuid"]
    for tab in TABS:
        for page in read_pages(viewer, uuid, tab):
            assert "<script>alert" not in page
            assert len(page) < 1_000_000
            assert "\u202e" not in page.partition('class="sd-json"')[2] or tab == "raw"


@pytest.mark.parametrize(
    "uuid", ["x" * 9000, "../a?b=c", "nul\0", "\u00fc mlaut"], ids=["long", "path", "NUL", "words"]
)
def test_a_message_with_an_unusable_id_is_saved_under_another(
    servicer: Browser, portal_service: Sandbox, uuid: str
) -> None:
    payload = {"borrower_bank_account_uuid": ACCOUNT, "amount": 12}
    portal_service.world.message("payment.succeeded", payload, uuid=uuid)
    for query in ("", "?source=copy"):
        assert servicer.get(f"/messages/{query}").status_code == 200
    kept = Message.objects.get()
    assert json.loads(kept.body)["uuid"] == uuid
    for tab in TABS:
        assert all("Not a usable ID" in page for page in read_pages(servicer, kept.uuid, tab))
    assert servicer.get(f"/messages/{kept.uuid}/link/").status_code == 200
    assert json.loads(servicer.get("/messages/export/?all=1&format=jsonl").getvalue())["Message"] == uuid


def test_a_payload_200_levels_deep_is_shown_and_found(viewer: Browser, portal_service: Sandbox) -> None:
    deep: Any = "bottom of it"
    for _ in range(200):
        deep = {"in": deep}
    uuid = portal_service.world.message("odd.depth", deep)["uuid"]
    for tab in TABS[:3]:
        assert all("bottom of it" in page for page in read_pages(viewer, uuid, tab))
    found = viewer.get("/messages/?q=bottom", headers=htmx("messages")).content.decode()
    assert found.count(f'data-message="{uuid}"') == 1


def test_bank_account_ids_are_shown_and_secrets_are_hidden(viewer: Browser, portal_service: Sandbox) -> None:
    ssn, ein, dob = SECRETS
    people = [{"SSN": ssn, "dob": dob, "name": "Ana"}]
    payload = {"borrower_bank_account_uuid": ACCOUNT, "EIN": ein, "people": people, "status": "SUCCEEDED"}
    uuid = portal_service.world.message("payment.succeeded", payload)["uuid"]
    texts = [page for tab in TABS[:3] for page in read_pages(viewer, uuid, tab)]
    texts.append(viewer.get(f"/messages/{uuid}/json/").content.decode())
    for form in ("csv", "jsonl"):
        texts.append(viewer.get(f"/messages/export/?all=1&format={form}").getvalue().decode())
    kept = Message.objects.values().get(uuid=uuid)
    texts.append(f"{kept}")
    for text in texts:
        assert ACCOUNT in text
        assert not [secret for secret in SECRETS if secret in text]
    assert [kept["body"].count(word) for word in ("[hidden]", "Ana")] == [3, 1]
