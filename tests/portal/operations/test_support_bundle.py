"""The support bundle: recent calls and states, without personal data."""

import re
from datetime import date
from decimal import Decimal

import django
from django.test import Client as Browser

from portal.audit.models import Actor, Entry, RemoteCall
from portal.gateway.client import client_for
from servicing import NewKeyPerson, __version__
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import SECRET
from tests.test_structure import ADDRESS

EIN, SSN, BORN = "930184475", "412558867", date(1987, 4, 30)


def bundle(browser: Browser) -> str:
    answer = browser.get("/status/support-bundle/")
    assert (answer.status_code, answer["Content-Type"]) == (200, "text/plain; charset=utf-8")
    assert "attachment" in answer["Content-Disposition"]
    return answer.content.decode()


def create_borrower() -> None:
    """Create a borrower with all the data that the bundle must not contain."""
    person = NewKeyPerson(
        first_name="Maya",
        last_name="Lindqvist",
        title="OWNER",
        citizenship="US",
        email="maya@harbor.example",
        phone="5415550142",
        address=ADDRESS,
        ssn=SSN,
        dob=BORN,
    )
    client_for(Actor.system("test")).borrowers.create_commercial(
        first_name="Harbor Light", email="desk@harbor.example", entity="CORPORATION", phone="5415550178",
        ein=EIN, address=ADDRESS, key_people=[person],
    )  # fmt: skip


def test_the_bundle_lists_calls_states_and_versions(supervisor: Browser, portal_service: Sandbox) -> None:
    owner = given.borrower(portal_service)
    client_for(Actor.system("test")).applications.submit(owner.uuid, amount=Decimal(2500))
    portal_service.fail_next("messages.list", status=401)
    supervisor.get("/messages/")
    text = bundle(supervisor)
    assert re.search(r"POST /v1/users/[\w-]+/loans/applications confirmed 20\d \d+ ms, tries 1", text)
    assert "1 x messages.list forbidden 401" in text
    assert "Applications: 1 calls, 0 failed" in text
    assert f"Portal {__version__}\n" in text
    assert f"Django {django.get_version()}" in text
    assert owner.uuid in text


def test_the_bundle_has_no_personal_data(supervisor: Browser, portal_service: Sandbox) -> None:
    create_borrower()
    assert RemoteCall.objects.get().request_body
    text = bundle(supervisor)
    secrets = [EIN, SSN, SECRET, "93-0184475", "412-55-8867", "1987/04/30", "1987-04-30"]
    people = ["Maya", "Lindqvist", "harbor", "Harbor", "541555", "97401", "Eugene", "Supervisor"]
    assert [word for word in secrets + people if word in text] == []
    assert '"ssn": "[hidden]"' in text


def test_a_truncated_body_is_not_shown(supervisor: Browser, portal_service: Sandbox) -> None:
    create_borrower()
    RemoteCall.objects.update(request_body='{"first_name": "Harbor', answer_body="")
    assert "sent     [22 characters, cut]" in bundle(supervisor)


def test_a_download_is_recorded(supervisor: Browser) -> None:
    bundle(supervisor)
    assert Entry.objects.get(action="operations.support_bundle").actor_name == "Supervisor (supervisor)"


def test_a_viewer_cannot_download_the_bundle(viewer: Browser) -> None:
    assert viewer.get("/status/support-bundle/").status_code == 403
    assert "support-bundle" not in viewer.get("/status/").content.decode()
