"""Opening a line application of the service by its ID, which puts it on file."""

import pytest
from django.http import HttpResponse
from django.test import Client as Browser

from portal.accounts.roles import Role
from portal.audit.models import Entry
from portal.records.models import Application, Borrower
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import browser_of


@pytest.fixture
def borrower(portal_service: Sandbox) -> Borrower:
    return given.borrower(portal_service, first_name="Northwind Baking Co LLC")


@pytest.fixture
def uuid(portal_service: Sandbox, borrower: Borrower) -> str:
    return str(portal_service.world.line_application(borrower.uuid, amount=7500)["uuid"])


def open_by_id(browser: Browser, borrower: Borrower, typed: str) -> HttpResponse:
    return browser.post(f"/borrowers/{borrower.uuid}/applications/open/", {"uuid": typed})


def test_the_application_is_saved(servicer: Browser, borrower: Borrower, uuid: str) -> None:
    answer = open_by_id(servicer, borrower, uuid)
    record = Application.objects.get()
    assert (answer.status_code, answer["Location"]) == (303, record.get_absolute_url())
    assert (record.uuid, record.borrower_uuid, record.product) == (uuid, borrower.uuid, "BUILD_CREDIT")
    assert (record.amount, record.created_by) == (7500, "Servicer (servicer)")


def test_the_id_is_found_in_pasted_text(servicer: Browser, borrower: Borrower, uuid: str) -> None:
    assert open_by_id(servicer, borrower, f"Re: application {uuid.upper()}, please check").status_code == 303


def test_opening_adds_one_audit_entry(servicer: Browser, borrower: Borrower, uuid: str) -> None:
    open_by_id(servicer, borrower, uuid)
    entry = Entry.objects.get(action="applications.open")
    assert (entry.subject_uuid, entry.borrower_uuid) == (uuid, borrower.uuid)
    assert entry.subject_label == f"application {uuid[:8]} for $7,500.00"


def test_the_url_can_prefill_the_id(servicer: Browser, borrower: Borrower, uuid: str) -> None:
    page = servicer.get(f"/borrowers/{borrower.uuid}/applications/open/?uuid={uuid}").content.decode()
    assert f'value="{uuid}"' in page


def test_another_borrowers_application_is_rejected(
    servicer: Browser, portal_service: Sandbox, borrower: Borrower
) -> None:
    other = portal_service.world.line_application(given.borrower(portal_service).uuid)["uuid"]
    answer = open_by_id(servicer, borrower, other)
    page = answer.content.decode()
    assert answer.status_code == 422
    assert "Northwind Baking Co LLC has no line application with this ID." in page
    assert "<q>" in page
    assert not Application.objects.exists()


@pytest.mark.parametrize(
    ("typed", "reason"),
    [
        ("", "Enter the line application ID"),
        ("c40e91d7", "No ID found"),
        ("../../users", "No ID found"),
        ("x" * 5000, "Up to 300 characters"),
        ("\x00", "unreadable character"),
    ],
)
def test_invalid_ids_are_rejected_with_a_reason(
    servicer: Browser, portal_service: Sandbox, borrower: Borrower, typed: str, reason: str
) -> None:
    answer = open_by_id(servicer, borrower, typed)
    assert answer.status_code == 422
    assert reason in answer.content.decode()
    assert portal_service.calls == []


@pytest.mark.slow
def test_an_unavailable_service_shows_503(
    servicer: Browser, portal_service: Sandbox, borrower: Borrower, uuid: str
) -> None:
    portal_service.fail_next("applications.get_for_line", status=503, times=None)
    assert open_by_id(servicer, borrower, uuid).status_code == 503


def test_only_lending_roles_can_open_applications(
    portal_service: Sandbox, borrower: Borrower, uuid: str
) -> None:
    for role in Role:
        expected = 303 if role in (Role.SERVICER, Role.SUPERVISOR) else 403
        assert open_by_id(browser_of(role), borrower, uuid).status_code == expected
