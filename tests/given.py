"""Create test data at the service and on file in the portal."""

from collections.abc import Iterable
from typing import Any

from django.db import connection
from django.db.models import Model
from django.utils import timezone

import servicing
from portal.records import store
from portal.records.models import NAMED_KINDS, Account, Answer, Answered, Borrower, Kind, Source
from portal.records.rows import MODELS, by_model, records_of
from portal.records.sources import OPERATIONS
from servicing import codec
from servicing.sandbox import Sandbox
from servicing.sandbox.wire import dumps


def borrower(sandbox: Sandbox, *, source: str = Source.SERVICE, **overrides: Any) -> Borrower:
    """Create a business with its key people at the service, and save its answer in the portal."""
    return save_answer(sandbox.world.borrower(**overrides), source=source)


def individual(sandbox: Sandbox, **overrides: Any) -> Borrower:
    """Create an individual borrower at the service, and save its answer in the portal."""
    return save_answer(sandbox.world.individual(**overrides))


def save_answer(user: dict[str, Any], *, source: str = Source.SERVICE) -> Borrower:
    """Save a user object as if the service had just returned it."""
    return store.save(store.observe(codec.decode(servicing.Borrower, dumps(user))), source=source)[0]


def account(kind: Kind, owner: Borrower, uuid: str, label: str = "") -> Any:
    """Add a loan, line or application to the portal by its ID alone."""
    item = store.Observation(kind=kind, uuid=uuid, borrower_uuid=owner.uuid, label=label)
    return store.save([item], source=Source.FILE)[0]


def loan(sandbox: Sandbox, owner: Borrower, **terms: Any) -> Account:
    """Create a loan at the service, and add its ID to the portal."""
    return account(Kind.LOAN, owner, sandbox.world.loan(owner.uuid, **terms)["uuid"])


def line(sandbox: Sandbox, owner: Borrower, **terms: Any) -> Account:
    """Create a line of credit at the service, and add its ID to the portal."""
    return account(Kind.LINE, owner, sandbox.world.line(owner.uuid, **terms)["uuid"])


def put_on_file(record: Answered, text: str) -> Answered:
    """Make this text the record's answer, whatever it is."""
    record.answer = put_answer(record.kind, record.uuid, text)
    record.answer_at = record.answer.last_at
    record.save()
    return record


def put_answer(kind: str, uuid: str, text: str) -> Answer:
    """Make this text the answer about a thing without a record, such as an account's list, whatever it is."""
    values = {"body": text, "last_at": timezone.now()}
    return Answer.objects.update_or_create(kind=kind, uuid=uuid, defaults=values)[0]


def create_with_answers(found: Iterable[tuple[Answered, str]]) -> None:
    """Create these records with these texts as their answers, of no known time."""
    records = []
    for record, text in found:
        record.answer = Answer(kind=record.kind, uuid=record.uuid, body=text)
        records.append(record)
    Answer.objects.bulk_create(
        [one.answer for one in records if one.answer],
        update_conflicts=True,
        unique_fields=["kind", "uuid"],
        update_fields=["body"],
    )
    for record in records:
        record.answer = record.answer  # Sets its key.
    for model, rows in by_model(records).items():
        model._default_manager.bulk_create(rows)


def reads_of(*kinds: Kind) -> list[str]:
    """The operations that read an account of these kinds with its lists."""
    return [one.name for one in OPERATIONS if one.ids and {one.kind, one.parent} & {*kinds}]


def uuids_on_file() -> list[str]:
    """The IDs of everything on file but repayments."""
    return [uuid for kind in NAMED_KINDS for uuid in records_of(kind).values_list("uuid", flat=True)]


def create_records(number: int, *, kind: str, **fields: Any) -> None:
    """Add this many records that differ only in their IDs, with one statement."""
    model: type[Model] = MODELS.get(kind, Account)
    if model is Account:
        fields["kind"] = kind
    first = model._default_manager.create(uuid=f"{kind}-0", **fields)
    names = [field.column for field in model._meta.concrete_fields if not field.primary_key]
    values = [f"'{kind}-' || number" if name == "uuid" else f'"{name}"' for name in names]
    columns = ", ".join(f'"{name}"' for name in names)
    with connection.cursor() as cursor:
        cursor.execute(
            "WITH RECURSIVE numbers (number) AS"
            " (SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number + 1 < %s)"
            f" INSERT INTO {model._meta.db_table} ({columns})"
            f" SELECT {', '.join(values)} FROM {model._meta.db_table}, numbers WHERE id = %s",
            [number, first.pk],
        )
