"""Tests that every box finds a text however it was stored and typed, and that equal names are duplicates."""

from urllib.parse import urlencode

import pytest
from django.test import Client as Browser

from portal.audit.chain import append
from portal.audit.models import Actor
from portal.borrowers.duplicates import find_matches
from portal.messaging.store import save_messages
from portal.notes.models import Note
from portal.records.models import Account, Kind
from servicing import Message as RemoteMessage
from servicing import codec
from servicing.sandbox import Sandbox
from tests import given
from tests.portal.pages import visible_text

pytestmark = [pytest.mark.postgres, pytest.mark.django_db]
PAIRS = [
    ("O’Brien Freight LLC", "o'brien freight"),
    ("O'Brien Freight LLC", "OBRIEN"),
    ("Wal-Mart Depot", "walmart"),
    ("Bjørn Łódź Trading", "bjorn lodz"),
    ("Alvarado & Lindgren", "alvarado and lindgren"),
    ("Alvarado and Lindgren", "Alvarado & Lindgren"),
    ("Juni\u200bper Ridge Farm", "juniper"),
    ("Juniper Ridge Farm", "“juniper ridge”"),
    ("J.P. Harbor", "jp harbor"),
    ("JP Harbor", "J. P. Harbor"),
    ("Mañana 3Ｍ Works", "manana 3m"),
    ("Δελφοί Μύλος", "δελφοι"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "typed"), PAIRS)
class TestText:
    @pytest.mark.slow
    def test_search_and_the_list_find_the_borrower(
        self, viewer: Browser, portal_service: Sandbox, name: str, typed: str
    ) -> None:
        known = given.borrower(portal_service, first_name=name)
        for address in ("/search/", "/borrowers/"):
            shown = viewer.get(f"{address}?{urlencode({'q': typed})}").content.decode()
            assert f'href="{known.get_absolute_url()}"' in shown

    @pytest.mark.slow
    def test_the_trail_finds_the_entry(self, admin: Browser, name: str, typed: str) -> None:
        append(Actor.system("test"), "notes.add", subject_label=name, reason="")
        state = urlencode({"q": typed, "when": "all"})
        shown = visible_text(admin.get(f"/admin/audit/entry/?{state}").content.decode())
        assert name in shown

    @pytest.mark.slow
    def test_messages_find_the_payload(self, viewer: Browser, name: str, typed: str) -> None:
        text = codec.to_json({"uuid": "m-1", "event": "x", "payload": {"memo": f"for {name}"}})
        save_messages([codec.decode(RemoteMessage, text)])
        shown = viewer.get(f"/messages/?{urlencode({'source': 'copy', 'q': typed.replace('3m', '')})}")
        assert 'href="/messages/m-1/' in shown.content.decode()

    @pytest.mark.slow
    def test_search_finds_the_note(
        self, viewer: Browser, portal_service: Sandbox, name: str, typed: str
    ) -> None:
        known = given.borrower(portal_service)
        Note.objects.create(
            subject_kind=Kind.BORROWER,
            subject_uuid=known.uuid,
            text=f"Ask about {name} today",
            author_id=1,
            author_name="A",
        )
        assert "Ask about" in visible_text(viewer.get(f"/search/?{urlencode({'q': typed})}").content.decode())


@pytest.mark.parametrize(
    ("name", "typed"),
    [
        ("O'Brien Freight LLC", "O’Brien Freight LLC"),
        ("3M", "3M"),
        ("3M", "3m"),
        ("7", "7"),
        ("???", "???"),
        ("$1 Store", "$1 store"),
        ("Acme: Inc.", "Acme Inc"),
        ("status:ACTIVE", "status:active"),
        ("2026-11-28 LLC", "2026-11-28 llc"),
        ("512-555-0143", "512-555-0143"),
        ("Wal-Mart", "WalMart"),
        ("한국 회사", "한국 회사"),
    ],
)
def test_the_same_name_is_a_duplicate(portal_service: Sandbox, name: str, typed: str) -> None:
    known = given.borrower(portal_service, first_name=name)
    given.borrower(portal_service, first_name="Another")
    (match,) = find_matches([typed])
    assert (match.record, match.shared) == (known, {typed.casefold(): name})


@pytest.mark.parametrize("typed", ["4M", "!!!", "Acme", "O'Brien Freight"])
def test_another_name_is_no_duplicate(portal_service: Sandbox, typed: str) -> None:
    for name in ("3M", "???", "Acme Two LLC", "O'Brien Freight LLC"):
        given.borrower(portal_service, first_name=name)
    assert find_matches([typed]) == []


def test_a_corrected_name_is_compared(portal_service: Sandbox) -> None:
    known = given.borrower(portal_service, first_name="Old Name")
    portal_service.world.amend(known.uuid, first_name="New Name")
    given.save_answer(portal_service.world.user(known.uuid))
    assert find_matches(["Old name"]) == []
    assert [one.record for one in find_matches(["new name"])] == [known]


@pytest.mark.slow
@pytest.mark.parametrize("typed", ["3m", "3M", "$1 store", "$1 STORE"])
def test_an_amount_may_be_a_name(viewer: Browser, portal_service: Sandbox, typed: str) -> None:
    name = "3M" if "m" in typed.lower() else "$1 Store"
    known = given.borrower(portal_service, first_name=name)
    loan = given.account(Kind.LOAN, known, "l-1")
    Account.objects.filter(pk=loan.pk).update(amount=3_000_000 if name == "3M" else 1)
    for address in ("/search/", "/borrowers/"):
        shown = viewer.get(f"{address}?{urlencode({'q': typed})}").content.decode()
        assert f'href="{known.get_absolute_url()}"' in shown
    found = viewer.get(f"/search/?{urlencode({'q': typed})}").content.decode()
    assert loan.get_absolute_url() in found
