"""An invented registry is what the service's answers would have made of it, and can be worked with."""

from io import StringIO

import pytest
from django.conf import LazySettings
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.forms import model_to_dict
from django.test import Client as Browser

from portal.registry import lists, memory
from portal.registry.models import Kind, Record
from servicing import Application, Borrower, KeyPerson, Loan, Repayment, Statement, codec

MODELS = {
    Kind.BORROWER: Borrower,
    Kind.KEY_PERSON: KeyPerson,
    Kind.APPLICATION: Application,
    Kind.LOAN: Loan,
    Kind.LINE: Statement,
    Kind.REPAYMENT: Repayment,
}
STANDING = ("past_due", "flagged", "status")


@pytest.fixture
def made(transactional_db: None, viewer: Browser) -> Browser:
    call_command("make_registry", borrowers=60, stdout=StringIO())
    return viewer


def test_each_record_is_what_its_answer_makes_of_it(made: Browser) -> None:
    records = Record.objects.all()
    assert [records.filter(kind=kind).count() for kind in MODELS] == [60, 120, 6, 60, 30, 12]
    for record in records:
        told = memory.columns(codec.decode(MODELS[Kind(record.kind)], record.answer))
        kept = {name: getattr(record, name) for name in told}
        skipped = STANDING if record.kind == Kind.BORROWER else ()
        assert kept | {name: told.get(name) for name in skipped if name in told} == told


def test_borrowers_tell_what_their_accounts_add_up_to(made: Browser) -> None:
    borrowers = Record.objects.filter(kind=Kind.BORROWER).order_by("id")
    before = [model_to_dict(one, STANDING) for one in borrowers]
    with transaction.atomic():
        lists.roll_up(borrowers.values_list("uuid", flat=True))
    assert [model_to_dict(one, STANDING) for one in borrowers.all()] == before
    assert {one["status"] for one in before} == {"", "APPROVED", "OPEN"}


def test_a_repayment_belongs_to_a_loan_of_its_borrower(made: Browser) -> None:
    loans = Record.objects.filter(kind=Kind.LOAN)
    paid = Record.objects.filter(kind=Kind.REPAYMENT)
    owners = dict(loans.values_list("uuid", "borrower_uuid"))
    assert [owners[one.parent_uuid] for one in paid] == [one.borrower_uuid for one in paid]


def test_it_can_be_searched_and_listed_and_has_its_indexes(made: Browser) -> None:
    one = Record.objects.filter(kind=Kind.BORROWER).last()
    assert one
    assert one.label in made.get("/search/", {"q": one.label}).content.decode()
    for page in (
        "/borrowers/?sort=-past_due",
        "/loans/?sort=rate",
        "/lines/?sort=past_due",
        one.get_absolute_url(),
    ):
        assert made.get(page).status_code == 200
    with connection.cursor() as cursor:
        there = connection.introspection.get_constraints(cursor, "registry_record")
    assert {index.name for index in Record._meta.indexes} <= set(there)


def test_nothing_invented_comes_among_real_records(made: Browser, settings: LazySettings) -> None:
    settings.DEBUG = False
    with pytest.raises(CommandError, match="holds records"):
        call_command("make_registry", borrowers=1)
    settings.DEBUG = True
    call_command("make_registry", borrowers=1, stdout=StringIO())
    assert Record.objects.filter(kind=Kind.BORROWER).count() == 61
