"""``manage.py borrower_data`` writes everything kept of one borrower, and nothing of others."""

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client as Browser

from portal.applications.models import Preference
from portal.audit.models import Entry
from portal.collections.models import Contact
from portal.notes.models import Note
from portal.records.models import Kind
from portal.records.sources import LISTS_OF
from servicing.sandbox import Sandbox
from tests import given
from tests.portal import pages

pytestmark = pytest.mark.postgres


def borrower_data(uuid: str) -> dict[str, list[dict[str, Any]]]:
    output = StringIO()
    call_command("borrower_data", uuid, stdout=output)
    found: dict[str, list[dict[str, Any]]] = json.loads(output.getvalue())
    return found


def test_everything_of_one_borrower_is_written(portal_service: Sandbox, servicer: Browser) -> None:
    mine, other = given.borrower(portal_service), given.borrower(portal_service, first_name="Other Works LLC")
    loan, others_loan = given.loan(portal_service, mine), given.loan(portal_service, other)
    for account in (loan, others_loan):
        pages.load_panels(servicer, account.get_absolute_url())
    for borrower in (mine, other):
        Note.objects.create(
            borrower_uuid=borrower.uuid, subject_kind="borrower", subject_uuid=borrower.uuid,
            text="Calls at night", author_id=1, author_name="Ana",
        )  # fmt: skip
        Contact.objects.create(
            borrower_uuid=borrower.uuid,
            channel="phone",
            outcome="spoke",
            author_id=1,
            author_name="Ana",
            day="2026-11-02",
        )
    found = borrower_data(mine.uuid)
    assert [row["uuid"] for row in found["registry.borrower"]] == [mine.uuid]
    assert [row["uuid"] for row in found["registry.account"]] == [loan.uuid]
    assert {row["kind"] for row in found["registry.answer"]} == {
        "borrower",
        "key_person",
        "loan",
        *LISTS_OF[Kind.LOAN],
    }
    assert {row["uuid"] for row in found["audit.pageview"] if "uuid" in row} <= {mine.uuid, loan.uuid}
    assert len(found["notes.note"]) == len(found["collections.contact"]) == 1
    text = json.dumps(found)
    assert other.uuid not in text
    assert others_loan.uuid not in text
    entry = Entry.objects.get(action="operations.borrower_data")
    assert (entry.subject_uuid, entry.borrower_uuid) == (mine.uuid, mine.uuid)


def test_earlier_answers_are_written(db: None) -> None:
    for name in ("Old Name LLC", "New Name LLC"):
        given.save_answer({"uuid": "b-1", "first_name": name, "key_people": []})
    found = borrower_data("b-1")
    assert ["Old Name LLC" in row["body"] for row in found["registry.snapshot"]] == [True]


def test_an_unknown_borrower_is_an_error_and_no_entry(db: None) -> None:
    with pytest.raises(CommandError, match="Nothing is kept of a borrower nobody"):
        borrower_data("nobody")
    assert not Entry.objects.filter(action="operations.borrower_data").exists()


def test_what_names_a_record_in_any_field_is_written(portal_service: Sandbox, servicer: Browser) -> None:
    loan = given.loan(portal_service, given.borrower(portal_service))
    Preference.objects.create(
        application_uuid=loan.borrower_uuid, offer_uuid="o-1", reason="Lower rate", author_name="Ana"
    )
    pages.load_panels(servicer, loan.get_absolute_url())
    found = borrower_data(loan.borrower_uuid)
    assert [row["reason"] for row in found["applications.preference"]] == ["Lower rate"]
    assert all(loan.borrower_uuid in row["path"] for row in found["audit.remotecall"])
