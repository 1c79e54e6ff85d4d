"""Tests of the generator of large test databases."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import Model
from django.test import Client as Browser

import servicing
from portal.messaging.models import Message
from portal.messaging.store import save_messages
from portal.records import store
from portal.records.models import Account, Answer, Application, Borrower, KeyPerson, Kind, Repayment, Source
from portal.records.repayments import AccountList, answer_of, save_repayments
from servicing import Loan, Statement, codec
from servicing import Message as ListedMessage
from tests.databases import database_url, forget_connections

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

MODELS = {
    Kind.BORROWER: servicing.Borrower,
    Kind.KEY_PERSON: servicing.KeyPerson,
    Kind.APPLICATION: servicing.Application,
    Kind.LOAN: Loan,
    Kind.LINE: Statement,
}
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def generate(transactional_db: None) -> Run:
    """Return a function that runs the command on the test's database."""

    def run(*words: str, **settings: str) -> subprocess.CompletedProcess[str]:
        forget_connections()
        command = [sys.executable, "-m", "tests.bench.generate", *words]
        environment = os.environ | {"DATABASE_URL": database_url()} | settings
        return subprocess.run(command, env=environment, capture_output=True, text=True)

    return run


@pytest.fixture
def world(generate: Run, viewer: Browser) -> Browser:
    process = generate("--borrowers", "60", "--messages", "50")
    assert process.stdout == "Generated 60 borrowers and 50 messages.\n", process.stderr
    return viewer


def column_values(model: type[Model], *excluded: str) -> list[dict[str, Any]]:
    """Return all rows without their keys and the excluded columns."""
    names = [
        field.attname
        for field in model._meta.concrete_fields
        if field.attname not in excluded and not field.auto_created
    ]
    return list(model._default_manager.order_by("uuid").values(*names))


def test_generated_rows_match_what_the_portal_saves(world: Browser) -> None:
    borrowers = Borrower.objects.filter()
    assert {one.decision for one in borrowers} == {"", "APPROVED", "OPEN"}
    assert {one.is_past_due for one in borrowers} == {True, False}
    assert {one.past_due is None for one in borrowers} == {True, False}
    assert borrowers.filter(past_due__gt=0).exists()
    owners = dict(Account.objects.filter(kind=Kind.LOAN).values_list("uuid", "borrower_uuid"))
    repayments = list(Repayment.objects.select_related("account"))
    assert [one.account and owners[one.account.uuid] for one in repayments] == [
        one.borrower_uuid for one in repayments
    ]
    assert len(repayments) == 12

    generated = column_values(Account, "answer_id", "created_at", "updated_at")
    generated_applications = column_values(Application, "answer_id", "created_at", "updated_at")
    generated_borrowers = column_values(Borrower, "answer_id", "created_at", "updated_at")
    generated_people = column_values(KeyPerson, "answer_id", "created_at", "updated_at")
    records = [
        *Account.objects.order_by("id").select_related("answer"),
        *Application.objects.order_by("id").select_related("answer"),
        *Borrower.objects.order_by("id").select_related("answer"),
        *KeyPerson.objects.order_by("id").select_related("answer"),
    ]
    assert all(record.created_at == record.updated_at == record.answer_at for record in records)
    assert [sum(record.kind == kind for record in records) for kind in MODELS] == [60, 120, 6, 60, 30]
    answers = column_values(Answer, "operation")
    paid = column_values(Repayment, "account_id", "updated_at")
    Repayment.objects.all().delete()
    Account.objects.all().delete()
    Application.objects.all().delete()
    Borrower.objects.all().delete()
    KeyPerson.objects.all().delete()
    Answer.objects.all().delete()
    for record in records:
        assert record.answer
        answer = codec.decode(MODELS[Kind(record.kind)], record.answer.body)
        items = store.observe(answer, uuid=record.uuid, borrower_uuid=record.borrower_uuid)
        store.save(items, source=Source.SERVICE, at=record.answer_at)
    for one in repayments:
        if one.account and one.last_listed_at:
            listed = AccountList(Kind.LOAN, one.account.uuid, one.borrower_uuid, [answer_of(one)])
            with transaction.atomic():
                save_repayments([listed], one.last_listed_at)
    assert column_values(Account, "answer_id", "created_at", "updated_at") == generated
    assert column_values(Application, "answer_id", "created_at", "updated_at") == generated_applications
    assert column_values(Borrower, "answer_id", "created_at", "updated_at") == generated_borrowers
    assert column_values(KeyPerson, "answer_id", "created_at", "updated_at") == generated_people
    assert column_values(Answer, "operation") == answers
    assert column_values(Repayment, "account_id", "updated_at") == paid

    generated = column_values(Message, "stored_at")
    bodies = [json.loads(body) for body in Message.objects.values_list("body", flat=True)]
    assert len(bodies) == 50
    Message.objects.all().delete()
    save_messages(codec.read_list(ListedMessage, codec.parse(json.dumps(bodies))))
    assert column_values(Message, "stored_at") == generated


def test_all_indexes_are_rebuilt(generate: Run) -> None:
    def indexes(model: type[Model]) -> Any:
        with connection.cursor() as cursor:
            found = connection.introspection.get_constraints(cursor, model._meta.db_table)
        return {
            name: (each["columns"], each["unique"], each["orders"])
            for name, each in found.items()
            if each["index"]
        }

    models: list[type[Model]] = [Account, Borrower, KeyPerson, Repayment, Message]
    before = [indexes(model) for model in models]
    generate("--borrowers", "1", "--messages", "1").check_returncode()
    for model, names in zip(models, before, strict=True):
        assert {index.name for index in model._meta.indexes} <= set(names)
    assert [indexes(model) for model in models] == before


def test_generated_data_can_be_searched_listed_and_extended(world: Browser) -> None:
    one = Borrower.objects.last()
    message = Message.objects.first()
    assert one
    assert message
    assert one.label in world.get("/search/", {"q": one.label}).content.decode()
    found = world.get("/messages/", {"q": json.loads(message.body)["payload"]["ach_id"]}).content.decode()
    assert message.get_absolute_url() in found
    for page in (
        "/borrowers/?sort=-past_due",
        "/loans/?sort=rate",
        "/lines/?sort=past_due",
        one.get_absolute_url(),
    ):
        assert world.get(page).status_code == 200
    # What comes later is found too.
    answer = codec.decode(
        servicing.Borrower, '{"uuid":"b-1","first_name":"Quillon Ferry Works","key_people":[]}'
    )
    store.save(store.observe(answer), source=Source.SERVICE)
    assert "/borrowers/b-1/" in world.get("/search/", {"q": "quillon"}).content.decode()
    save_messages(codec.read_list(ListedMessage, codec.parse('[{"uuid":"m-1","event":"payment.zebrawood"}]')))
    assert "/messages/m-1/" in world.get("/messages/", {"q": "zebrawood"}).content.decode()


def test_production_databases_with_records_are_rejected(world: Browser, generate: Run) -> None:
    production = {
        "DEBUG": "off",
        "SECRET_KEY": "k3-9Zr_TqV7wXy2LmN8pQ4sB6dF1hJ5gC0aEuRiOoPzXcVbNmAsDfGhJkLqWeRtY",
        "SERVICING_URL": "https://service.example",
        "SERVICING_CLIENT_ID": "desk",
        "SERVICING_SECRET": "0123456789abcdef0123456789abcdef",
        "ALLOWED_HOSTS": "desk.example",
    }
    refused = generate("--borrowers", "1", **production)
    assert (refused.returncode, refused.stdout) == (1, ""), refused.stderr
    assert refused.stderr.startswith("This database holds records.")
    generate("--borrowers", "2", "--messages", "2").check_returncode()
    assert Borrower.objects.count() == 62
    assert Message.objects.count() == 52
