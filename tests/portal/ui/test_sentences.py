"""Sentences that end in a name with its own period get no second one."""

import re
from html import unescape
from uuid import uuid4

import pytest
from django.http import HttpResponse
from django.test import Client as Browser

from portal.records.models import Account, KeyPerson
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import htmx


@pytest.fixture
def oyster(portal_service: Sandbox) -> Account:
    return given.borrower(portal_service, first_name="Oyster Inc.")


def page_text(response: HttpResponse) -> str:
    """The text of a page."""
    return " ".join(unescape(re.sub("<[^>]*>", " ", response.content.decode())).split())


def test_pages_do_not_double_the_period(servicer: Browser, oyster: Account) -> None:
    person = KeyPerson.objects.get()
    of = f"/borrowers/{oyster.uuid}/"
    sentences = {
        f"{of}people/{person.uuid}/edit/": "Key person of Oyster Inc. Values as of",
        f"{of}applications/open/": "Oyster Inc. The service can’t list applications",
        "/messages/?borrower=oyster": "Borrower Oyster Inc. Messages that aren’t synced",
    }
    for address, sentence in sentences.items():
        assert sentence in page_text(servicer.get(address, headers=htmx("messages")))


@pytest.mark.slow
def test_form_messages_do_not_double_the_period(
    servicer: Browser, portal_service: Sandbox, oyster: Account
) -> None:
    review = servicer.post(
        f"/borrowers/{oyster.uuid}/applications/new/", {"amount": "9000", "submit_id": uuid4()}
    )
    assert "for Oyster Inc. This can’t be undone" in page_text(review)
    again = {"kind": "borrower", "uuid": oyster.uuid, "label": "Oyster"}
    assert "Already on file as Oyster Inc. Open" in page_text(servicer.post("/registry/add/", again))
    given.borrower(portal_service, first_name="Pearl Oyster Inc.")
    several = page_text(servicer.get("/messages/?borrower=oyster", headers=htmx("messages")))
    assert re.search(r"Oyster Inc\.; (Pearl )?Oyster Inc\. Enter more of the name", several)
