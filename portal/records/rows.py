"""Finds, inserts and updates many records of any kind at once."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import reduce
from operator import or_
from typing import Any, Protocol, TypeVar

from django.db.models import Q, QuerySet

from portal.core.database import index_values
from portal.records.models import (
    LISTED,
    RECORDED_KINDS,
    Account,
    Answer,
    Answered,
    Application,
    Borrower,
    KeyPerson,
    Kind,
    Repayment,
    Saved,
)


class HasBorrower(Protocol):
    """A row that belongs to a borrower, or to none if the ID is empty."""

    @property
    def borrower_uuid(self) -> str: ...


B = TypeVar("B", bound=HasBorrower)
INSERT_BATCH_ROWS = 100
LINK_COLUMNS = ("id", "kind", "uuid", "borrower_uuid", "label")
"""The columns that a record's name and address need."""
MODELS: dict[str, type[Application | Borrower | KeyPerson | Repayment]] = {
    Kind.APPLICATION: Application,
    Kind.BORROWER: Borrower,
    Kind.KEY_PERSON: KeyPerson,
    Kind.REPAYMENT: Repayment,
}
"""The models of the kinds that are not rows of ``Account``."""


def records_of(kind: str) -> QuerySet[Any]:
    model = MODELS.get(kind)
    return model._default_manager.all() if model else Account.objects.filter(kind=kind)


def with_answers(found: QuerySet[Any]) -> QuerySet[Any]:
    """The same records, each read with its answer; a repayment has none of its own."""
    return found if found.model is Repayment else found.select_related("answer")


def new_record(kind: str, uuid: str, *, created_by: str) -> Answered:
    if kind == Kind.APPLICATION:
        return Application(uuid=uuid, created_by=created_by)
    if kind == Kind.BORROWER:
        return Borrower(uuid=uuid, created_by=created_by)
    if kind == Kind.KEY_PERSON:
        return KeyPerson(uuid=uuid, created_by=created_by)
    if kind in RECORDED_KINDS:
        return Account(kind=kind, uuid=uuid, created_by=created_by)
    raise ValueError(f"Nothing of the kind {kind} is a record")


def create_records(records: Sequence[Answered]) -> None:
    """Insert new records of any model, and set their keys."""
    for model, rows in by_model(records).items():
        model._default_manager.bulk_create(rows, batch_size=INSERT_BATCH_ROWS)


def by_model(records: Iterable[Answered]) -> dict[type[Answered], list[Any]]:
    found: dict[type[Answered], list[Any]] = {}
    for record in records:
        found.setdefault(type(record), []).append(record)
    return found


def update_records(records: Iterable[Answered], names: Collection[str]) -> None:
    """Write these fields of saved records as they are, one by one: building one statement for many takes longer."""
    for record in records:
        values = {name: getattr(record, name) for name in names}
        type(record)._default_manager.filter(pk=record.pk).update(**values)


def records_by_key(pairs: Iterable[tuple[str, str]]) -> list[QuerySet[Any]]:
    """The records with these pairs of kind and ID, a query for each table that has some of them."""
    uuids: dict[str, list[str]] = {}
    recorded: list[tuple[str, str]] = []
    for kind, uuid in pairs:
        if kind in MODELS:
            uuids.setdefault(kind, []).append(uuid)
        else:
            recorded.append((kind, uuid))
    found: list[QuerySet[Any]] = [Account.objects.filter(_has_key(recorded))] if recorded else []
    return found + [records_of(kind).filter(uuid__in=of_kind) for kind, of_kind in uuids.items()]


def answers_by_key(pairs: Iterable[tuple[str, str]]) -> QuerySet[Answer]:
    """The answers about these pairs of kind and ID."""
    return Answer.objects.filter(_has_key(pairs))


def _has_key(pairs: Iterable[tuple[str, str]]) -> Q:
    """One condition for each kind: with a single one, SQLite would read the whole table."""
    uuids: dict[str, list[str]] = {}
    for kind, uuid in pairs:
        uuids.setdefault(kind, []).append(uuid)
    of_kinds = (Q(kind=kind, uuid__in=of_kind) for kind, of_kind in uuids.items())
    return reduce(or_, of_kinds, Q(pk__in=[]))


def read_records(
    found: QuerySet[Any], fields: Collection[str] | None, *, related: str, batch_size: int
) -> Iterator[Any]:
    """Read many records: whole with what is related, such as their answers, or faster these fields.

    Any other field costs a query for each record.
    """
    if fields is None:
        yield from found.select_related(related).iterator(batch_size)
        return
    names = [one.attname for one in found.model._meta.concrete_fields if one.attname in fields]
    for values in found.values_list(*names).iterator(batch_size):
        yield found.model.from_db(found.db, names, values)


def active_records(kind: str) -> QuerySet[Any]:
    return records_of(kind).filter(LISTED)


def distinct_values(kind: str, column: str, limit: int = 1_000) -> list[str]:
    """The distinct values of a column among active records, in order."""
    if kind in RECORDED_KINDS:
        rows = f"registry_record WHERE kind = '{Kind(kind)}' AND archived_at IS NULL AND"
    elif kind == Kind.REPAYMENT:  # Nobody archives one.
        rows = "registry_repayment WHERE"
    else:
        rows = f"{MODELS[kind]._meta.db_table} WHERE archived_at IS NULL AND"
    return index_values(rows, column, limit)


def records_by_uuid(kinds: Iterable[str], uuids: Iterable[str]) -> dict[str, Account]:
    """Records by ID, as far as a link needs them. Any other field costs a query for each record."""
    wanted = {uuid for uuid in uuids if uuid}
    found = (
        Account.objects.filter(kind__in=list(kinds), uuid__in=wanted).only(*LINK_COLUMNS) if wanted else ()
    )
    return {record.uuid: record for record in found}


def records_with_owners(uuids: Iterable[str]) -> dict[str, tuple[Saved, Account | None, Borrower | None]]:
    """What messages are about, by ID, with a repayment's account and the borrower, all as far as links need them."""
    wanted = {uuid for uuid in uuids if uuid}
    account = (f"account__{name}" for name in LINK_COLUMNS)
    repayments = Repayment.objects.filter(uuid__in=wanted).select_related("account")
    listed = {one.uuid: one for one in repayments.only("uuid", "borrower_uuid", *account)}
    accounts = {uuid: one.account for uuid, one in listed.items()}
    found: dict[str, Saved] = {**listed, **records_by_uuid(RECORDED_KINDS, wanted - listed.keys())}
    if rest := wanted - found.keys():
        applications = Application.objects.filter(uuid__in=rest).only("uuid", "borrower_uuid", "label")
        found |= {one.uuid: one for one in applications}
    if rest := wanted - found.keys():
        found |= {one.uuid: one for one in KeyPerson.objects.filter(uuid__in=rest)}
    owners = {uuid: one.borrower_uuid or _owner(accounts.get(uuid)) for uuid, one in found.items()}
    borrowers = borrowers_by_uuid({*owners.values()} | (wanted - found.keys()))
    found |= {uuid: borrowers[uuid] for uuid in wanted - found.keys() if uuid in borrowers}
    return {
        uuid: (one, accounts.get(uuid), borrowers.get(owners.get(uuid, uuid))) for uuid, one in found.items()
    }


def _owner(account: Account | None) -> str:
    return account.borrower_uuid if account else ""


def borrowers_by_uuid(uuids: Iterable[str]) -> dict[str, Borrower]:
    """Borrowers by ID, as far as a link needs them. Any other field costs a query for each."""
    wanted = {uuid for uuid in uuids if uuid}
    found = Borrower.objects.filter(uuid__in=wanted).only("uuid", "name") if wanted else ()
    return {one.uuid: one for one in found}


def with_borrowers(rows: Iterable[B]) -> list[tuple[B, Borrower | None]]:
    """Each row with its borrower, if on file, as far as a link needs it; one more query."""
    rows = list(rows)
    borrowers = borrowers_by_uuid(row.borrower_uuid for row in rows)
    return [(row, borrowers.get(row.borrower_uuid)) for row in rows]
