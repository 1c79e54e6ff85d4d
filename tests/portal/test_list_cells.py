"""Tests that list cells, which Python code renders, escape text from outside."""

import json

import pytest
from django.db.models import Model
from django.test import Client as Browser
from django.utils.html import escape

from portal.applications.list_page import APPLICATIONS
from portal.borrowers.list_page import BORROWERS
from portal.credit_lines.list_page import LINES
from portal.loans.list_page import LOANS
from portal.records.models import Account, Application, Borrower, KeyPerson, Repayment
from portal.repayments.list_page import REPAYMENTS
from portal.tables.pages import ListPage
from tests import given

EVIL = "<i x='\"&"
WORDS: dict[type[Model], list[str]] = {
    Application: ["borrower_uuid", "label", "product", "decision", "created_by"],
    Account: ["borrower_uuid", "label", "product", "status", "state", "created_by"],
    Borrower: ["name", "type", "legal_form", "decision", "state", "city", "phone", "email", "created_by"],
    Repayment: ["borrower_uuid", "product", "status", "payment_type", "bank_account"],
}


@pytest.mark.django_db
@pytest.mark.parametrize(
    "list_page", [BORROWERS, APPLICATIONS, LOANS, LINES, REPAYMENTS], ids=lambda page: page.area
)
def test_hostile_text_is_escaped_in_every_cell(viewer: Browser, list_page: ListPage) -> None:
    answer = {
        "uuid": EVIL,
        "product": EVIL,
        "status": {"decision": EVIL} if list_page.model is Application else EVIL,
        "created_at": EVIL,
        "payment_type": EVIL,
        "error_description": EVIL,
        "borrower_bank_account_uuid": EVIL,
        "effective_date": EVIL,
        "amount": EVIL,
    }
    hostile = dict.fromkeys(WORDS[list_page.model], EVIL)
    if list_page.model is Repayment:
        Repayment.objects.create(uuid="a-1", body=json.dumps(answer), **hostile)
    else:
        kind = {"kind": list_page.kinds[0]} if list_page.model is Account else {}
        record = list_page.model.objects.create(uuid="a-1", **kind, **hostile)
        given.put_on_file(record, json.dumps(answer))
    Borrower.objects.create(uuid=EVIL, name=EVIL)
    KeyPerson.objects.create(uuid="p-1", borrower_uuid="a-1", name=EVIL)
    if list_page.optional_columns:
        chosen = {"column": [column.name for column in list_page.optional_columns]}
        assert viewer.post(list_page.url, chosen)["Location"] == list_page.url
    page = viewer.get(list_page.url).content.decode()
    assert "<i x=" not in page
    assert page.count(escape(EVIL)) + page.count(escape(EVIL)[:24]) > 3
