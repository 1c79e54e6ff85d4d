"""Tests of answers that the service should never send: they break no page and no write."""

import json
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db.models import Model
from django.test import Client as Browser

import servicing
from portal.audit.models import Entry, WriteIntent
from portal.records import store
from portal.records.models import (
    NAMED_KINDS,
    Answered,
    Application,
    Borrower,
    Repayment,
    Source,
)
from portal.records.repayments import answer_of
from portal.records.rows import records_of
from portal.records.sources import KIND_OF_MODEL
from servicing import KeyPerson, Loan, Statement, codec
from servicing.sandbox import Sandbox
from tests import given

pytestmark = pytest.mark.postgres

LONG = "x" * 600
IDS = {"borrower_id": "owner-1", "line_id": "line-1"}
ADDRESS = {"line_1": LONG, "city": LONG, "state": LONG, "zip": LONG, "country": LONG}
PERSON = {"first_name": LONG, "last_name": "Nul \0 byte", "phone": LONG, "email": LONG, "address": ADDRESS}
STRANGE: list[tuple[type[Any], dict[str, Any]]] = [
    (
        servicing.Borrower,
        PERSON | {"user_type": LONG, "entity": LONG, "key_people": [PERSON | {"uuid": "p-1", "title": LONG}]},
    ),
    (servicing.Borrower, {"first_name": 5, "address": "nowhere", "key_people": [None, 7, {}]}),
    (KeyPerson, PERSON | {"title": "\0"}),
    (servicing.Application, {"product": LONG, "amount": 1e30, "status": {"decision": LONG}}),
    (servicing.Application, {"product": "\0", "amount": "many", "status": "APPROVED"}),
    (Loan, {"amount": -1e18, "state": LONG, "status": LONG, "product": LONG, "external_id": "\0"}),
    (Loan, {"amount": 0.123456789, "repayments_start_date": "0000-00-00", "delinquent": "perhaps"}),
    (Statement, {"credit_limit": 1e25, "past_due_balance": 1e16, "payment_due_date": "9999-12-31"}),
]
STRANGE_REPAYMENTS = [
    {"amount": 12345678901234567890.5, "ach_id": "\0", "effective_date": "9999-12-31 23:59:59 PST"},
    {"status": LONG, "payment_type": LONG, "error_description": LONG, "effective_date": "0001-01-01"},
    {"status": "\0", "error_description": "R01 \0", "borrower_bank_account_uuid": LONG, "ach_batch_id": LONG},
]


@pytest.mark.django_db
@pytest.mark.parametrize(("model", "body"), STRANGE, ids=lambda value: getattr(value, "__name__", "body"))
def test_strange_answers_are_saved_in_valid_columns(model: type[Any], body: dict[str, Any]) -> None:
    answer = codec.decode(model, json.dumps({"uuid": "u-1"} | body))
    uuid = IDS["line_id"] if model is Statement else ""
    observed = store.observe(answer, uuid=uuid, borrower_uuid=IDS["borrower_id"])
    store.save([item for item in observed if item.uuid], source=Source.SERVICE)
    records = [one for kind in NAMED_KINDS for one in records_of(kind)]
    assert records
    for record in records:
        assert not [name for name, value in vars(record).items() if isinstance(value, str) and "\0" in value]
        assert column_errors(record) == {}
        assert type(store.last_answer(record, model_of(record))) is model_of(record)


@pytest.mark.django_db
def test_strange_repayments_are_saved_in_valid_columns() -> None:
    for body in (*STRANGE_REPAYMENTS, {}):
        answer = codec.decode_list(servicing.Repayment, json.dumps([{"uuid": "u-1"} | body]))
        store.save(store.records_in_answer("repayments.of_line", answer, IDS), source=Source.SERVICE)
        found = Repayment.objects.get()
        assert column_errors(found) == {}
        for one in (found, *found.statuses.all()):
            assert not [value for value in vars(one).values() if isinstance(value, str) and "\0" in value]
        assert answer_of(found).uuid == "u-1"
    assert found.statuses.count() == 3


def column_errors(record: Model) -> dict[str, list[str]]:
    """Return the validation errors of a record's columns."""
    try:
        record.clean_fields(exclude=[f.name for f in record._meta.fields if getattr(record, f.name) is None])
    except ValidationError as error:
        return error.message_dict
    return {}


def model_of(record: Answered) -> type[Any]:
    return next(model for model, kind in KIND_OF_MODEL.items() if kind == record.kind)


@pytest.mark.django_db
@pytest.mark.parametrize("uuid", ["../x", "a/b", "a b", "é", "x" * 65, "a\0"])
def test_records_with_an_unusable_uuid_are_not_saved(uuid: str) -> None:
    borrower = {"uuid": "b-1", "key_people": [{"uuid": uuid}, {"uuid": "p-1"}]}
    answer = codec.decode(servicing.Borrower, json.dumps(borrower))
    assert [item.uuid for item in store.records_in_answer("borrowers.update", answer, {})] == ["b-1", "p-1"]
    loan = codec.decode(Loan, json.dumps({"uuid": uuid}))
    assert store.records_in_answer("loans.get", loan, IDS) == []


@pytest.mark.urls("tests.portal.trial_urls")
class TestWrite:
    @pytest.fixture
    def borrower(self, portal_service: Sandbox) -> Borrower:
        return given.borrower(portal_service)

    def submit(self, browser: Browser, borrower: Borrower) -> WriteIntent:
        typed = {"submit_id": "one", "borrower": borrower.uuid, "amount": "1200.00"}
        assert browser.post("/trial/submit/", typed).status_code < 500
        return WriteIntent.objects.get()

    def test_a_write_with_an_unusable_uuid_is_confirmed(
        self, servicer: Browser, borrower: Borrower, portal_service: Sandbox
    ) -> None:
        portal_service.fail_next(
            "applications.submit", changes={"uuid": "../x", "amount": 1e30, "product": LONG}
        )
        intent = self.submit(servicer, borrower)
        assert (intent.state, intent.subject_uuid) == ("confirmed", "")
        assert servicer.get(intent.get_absolute_url()).status_code == 200

    def test_a_write_with_absurd_values_is_confirmed(
        self, servicer: Browser, borrower: Borrower, portal_service: Sandbox
    ) -> None:
        portal_service.fail_next(
            "applications.submit", changes={"amount": 1e30, "product": LONG, "status": {"decision": "\0"}}
        )
        assert self.submit(servicer, borrower).state == "confirmed"
        assert Application.objects.get().amount is None

    def test_nul_characters_are_removed_from_messages(
        self, servicer: Browser, borrower: Borrower, portal_service: Sandbox
    ) -> None:
        portal_service.fail_next(
            "applications.submit", status=400, body={"message": "Nul \0 byte", "\0key": {"ach_id": "\0"}}
        )
        intent = self.submit(servicer, borrower)
        stored = json.dumps([intent.message, Entry.objects.get(phase="outcome").detail])
        assert intent.state == "rejected"
        assert "Nul \\ufffd byte" in stored
        assert "\\u0000" not in stored

    def test_a_huge_answer_is_truncated(
        self, servicer: Browser, borrower: Borrower, portal_service: Sandbox
    ) -> None:
        portal_service.fail_next("applications.submit", changes={"purpose": "x" * 1_000_000})
        self.submit(servicer, borrower)
        answer = Entry.objects.get(phase="outcome").detail["answer"]
        assert len(answer) == 20_000
