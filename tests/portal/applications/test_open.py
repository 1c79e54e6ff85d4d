"""An application for a line that the service has is read by its identifier, and known here from then on."""

import pytest
from django.http import HttpResponse
from django.test import Client as Browser

from portal.accounts.roles import Role
from portal.audit.models import Entry
from portal.registry.models import Kind, Record
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import browser_of


@pytest.fixture
def borrower(portal_service: Sandbox) -> Record:
    return given.borrower(portal_service, first_name="Northwind Baking Co LLC")


@pytest.fixture
def uuid(portal_service: Sandbox, borrower: Record) -> str:
    return str(portal_service.world.line_application(borrower.uuid, amount=7500)["uuid"])


def read(browser: Browser, borrower: Record, typed: str) -> HttpResponse:
    return browser.post(f"/borrowers/{borrower.uuid}/applications/open/", {"uuid": typed})


def test_it_becomes_known_with_its_offers(servicer: Browser, borrower: Record, uuid: str) -> None:
    answer = read(servicer, borrower, uuid)
    record = Record.objects.get(kind=Kind.APPLICATION)
    assert (answer.status_code, answer["Location"]) == (303, record.get_absolute_url())
    assert (record.uuid, record.borrower_uuid, record.category) == (uuid, borrower.uuid, "BUILD_CREDIT")
    assert (record.amount, record.created_by) == (7500, "Servicer (servicer)")


def test_it_is_found_in_whatever_was_pasted(servicer: Browser, borrower: Record, uuid: str) -> None:
    assert read(servicer, borrower, f"Re: application {uuid.upper()}, please check").status_code == 303


def test_it_leaves_one_audit_entry(servicer: Browser, borrower: Record, uuid: str) -> None:
    read(servicer, borrower, uuid)
    entry = Entry.objects.get(action="applications.open")
    assert (entry.subject_uuid, entry.borrower_uuid) == (uuid, borrower.uuid)
    assert entry.subject_label == f"application {uuid[:8]} for $7,500.00"


def test_the_form_can_begin_with_an_identifier(servicer: Browser, borrower: Record, uuid: str) -> None:
    page = servicer.get(f"/borrowers/{borrower.uuid}/applications/open/?uuid={uuid}").content.decode()
    assert f'value="{uuid}"' in page


def test_one_of_somebody_else_is_refused_in_the_services_words(
    servicer: Browser, portal_service: Sandbox, borrower: Record
) -> None:
    other = portal_service.world.line_application(given.borrower(portal_service).uuid)["uuid"]
    answer = read(servicer, borrower, other)
    page = answer.content.decode()
    assert answer.status_code == 422
    assert "Northwind Baking Co LLC has no line application with this ID." in page
    assert "<q>" in page
    assert not Record.objects.filter(kind=Kind.APPLICATION).exists()


@pytest.mark.parametrize(
    ("typed", "reason"),
    [
        ("", "This field is required"),
        ("c40e91d7", "No ID found"),
        ("../../users", "No ID found"),
        ("x" * 5000, "Up to 300 characters"),
        ("\x00", "unreadable character"),
    ],
)
def test_what_is_no_identifier_is_refused_with_a_sentence(
    servicer: Browser, portal_service: Sandbox, borrower: Record, typed: str, reason: str
) -> None:
    answer = read(servicer, borrower, typed)
    assert answer.status_code == 422
    assert reason in answer.content.decode()
    assert portal_service.calls == []


def test_a_silent_service_is_said(
    servicer: Browser, portal_service: Sandbox, borrower: Record, uuid: str
) -> None:
    portal_service.fail_next("applications.get_for_line", status=503, times=None)
    assert read(servicer, borrower, uuid).status_code == 503


def test_it_needs_a_role_that_lends(portal_service: Sandbox, borrower: Record, uuid: str) -> None:
    for role in Role:
        expected = 303 if role in (Role.SERVICER, Role.SUPERVISOR) else 403
        assert read(browser_of(role), borrower, uuid).status_code == expected
