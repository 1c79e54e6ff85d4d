"""The preferred offer: an internal mark with a reason, audited and never sent to the service."""

import json
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client as Browser

from portal.accounts.roles import Role
from portal.applications.models import Preference
from portal.audit.models import Entry
from portal.records.models import Application, Kind
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import browser_of, htmx
from tests.portal.applications.answers import offer, saved_application
from tests.portal.pages import page, visible_text

A, B = offer(0)["uuid"], offer(1)["uuid"]
REASON = "Lowest payment stress for Q1"


@pytest.fixture
def record(portal_service: Sandbox) -> Application:
    return saved_application(given.borrower(portal_service), offer(0), offer(1))


def prefer(
    browser: Browser, record: Application, offer_uuid: str, reason: str = REASON, **headers: Any
) -> HttpResponse:
    return browser.post(
        f"{record.get_absolute_url()}prefer/", {"offer": offer_uuid, "reason": reason}, **headers
    )


def test_the_mark_shows_author_and_reason(
    servicer: Browser, record: Application, portal_service: Sandbox
) -> None:
    answer = prefer(servicer, record, B)
    assert (answer.status_code, answer["Location"]) == (303, record.get_absolute_url())
    shown = page(servicer, record.get_absolute_url())
    assert "Offer B is preferred by Servicer (servicer)" in visible_text(shown)
    assert f"“{REASON}”" in shown
    assert portal_service.calls == []


def test_with_htmx_the_page_updates_and_the_dialog_closes(servicer: Browser, record: Application) -> None:
    answer = prefer(servicer, record, A, headers=htmx("dialog"))
    assert answer.status_code == 204
    assert {"application:preferred", "dialog:close"} <= set(json.loads(answer["HX-Trigger"]))


def test_a_new_mark_replaces_the_old_and_both_are_audited(servicer: Browser, record: Application) -> None:
    prefer(servicer, record, A)
    prefer(browser_of(Role.SUPERVISOR), record, B, "Cheaper in the end")
    assert (Preference.objects.get().offer_uuid, Preference.objects.get().author_name) == (
        B,
        "Supervisor (supervisor)",
    )
    first, second = Entry.objects.filter(action="applications.prefer").order_by("id")
    assert (first.changes, first.reason) == ({"preferred offer": ["", "A (14.92% APR)"]}, REASON)
    assert second.changes["preferred offer"][0] == "A (14.92% APR)"
    assert second.changes["preferred offer"][1].startswith("B (")
    assert (second.detail, second.actor_name) == ({"offer": B}, "Supervisor (supervisor)")


def test_the_mark_can_be_withdrawn(servicer: Browser, record: Application) -> None:
    prefer(servicer, record, A)
    prefer(servicer, record, "", "Borrower declined")
    assert not Preference.objects.exists()
    assert Entry.objects.latest("id").changes == {"preferred offer": ["A (14.92% APR)", ""]}


def test_the_confirmation_names_the_offer(servicer: Browser, record: Application) -> None:
    address = f"{record.get_absolute_url()}prefer/?offer={A}"
    full_page = servicer.get(address).content.decode()
    dialog = servicer.get(address, headers=htmx("dialog")).content.decode().strip()
    assert "<html" in full_page
    assert dialog.startswith('<div id="dialog">')
    for html in (full_page, dialog):
        assert "Mark offer A (14.92% APR) as preferred?" in html
        assert "Nothing is sent to the service." in html


def test_withdrawing_has_its_own_confirmation(servicer: Browser, record: Application) -> None:
    assert b"Withdraw the preferred mark?" in servicer.get(f"{record.get_absolute_url()}prefer/").content


@pytest.mark.parametrize(
    ("offer_uuid", "reason", "words"),
    [
        (A, "", "Enter the reason."),
        (A, "x" * 201, "Up to 200 characters"),
        (A, "\x00", "unreadable character"),
        ("51aa7f29-0000-4000-8000-000000000009", REASON, "no longer exists"),
        ("'; DROP TABLE", REASON, "no longer exists"),
        ("x" * 5000, REASON, "at most 64"),
    ],
)
def test_invalid_input_is_rejected_with_a_reason(
    servicer: Browser, record: Application, offer_uuid: str, reason: str, words: str
) -> None:
    for headers in ({}, {"headers": htmx("dialog")}):
        answer = prefer(servicer, record, offer_uuid, reason, **headers)
        assert answer.status_code == 422
        assert words in answer.content.decode()
    assert not Preference.objects.exists()
    assert not Entry.objects.filter(action="applications.prefer").exists()


def test_only_lending_roles_can_mark_offers(portal_service: Sandbox, record: Application) -> None:
    for role in Role:
        expected = 303 if role in (Role.SERVICER, Role.SUPERVISOR) else 403
        assert prefer(browser_of(role), record, A).status_code == expected


def test_offers_without_a_unique_id_cannot_be_marked(servicer: Browser, portal_service: Sandbox) -> None:
    record = saved_application(given.borrower(portal_service), offer(0), offer(0), offer(1, uuid=None))
    assert prefer(servicer, record, A).status_code == 422
    shown = page(servicer, record.get_absolute_url())
    assert "No ID" in shown
    assert "Mark as preferred" not in shown


def test_a_mark_on_a_missing_offer_is_still_shown(
    servicer: Browser, portal_service: Sandbox, record: Application
) -> None:
    prefer(servicer, record, A)
    Preference.objects.update(offer_uuid="gone")
    assert "An offer no longer on file is preferred by Servicer (servicer)" in visible_text(
        page(servicer, record.get_absolute_url())
    )


def test_marking_before_the_first_read_returns_404(servicer: Browser, portal_service: Sandbox) -> None:
    record = given.account(
        Kind.APPLICATION, given.borrower(portal_service), "c40e91d7-0000-4000-8000-000000000009"
    )
    assert prefer(servicer, record, A).status_code == 404
