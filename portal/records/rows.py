"""Finds, inserts and updates many records at once. Hides how each database does that fast, bypassing the model."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache, reduce
from itertools import chain, islice
from operator import itemgetter, or_
from typing import Any, Protocol, TypeVar

from django.db import connection
from django.db.models import Model, Q, QuerySet
from django.db.models.base import ModelState
from django.utils import timezone

from portal.core.database import fetch_rows, index_values
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
_FIELDS = {field.attname: field for field in Account._meta.concrete_fields if not field.primary_key}
_DEFAULTS = {field.attname: field.get_default() for field in Account._meta.concrete_fields}
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
UPDATE_BATCH_ROWS = 50
"""Rows in one statement, because its size grows with each."""


def insert_rows(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Insert rows of prepared values, in the caller's transaction.

    SQLite copies every page that a statement with triggers changes, in case it fails; a row changes one of each of its
    twenty indexes. So a statement inserts many rows, and bypasses Django, which would scan all of it for placeholders.
    """
    into = f"registry_record ({', '.join(columns)})"
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            with cursor.copy(f"COPY {into} FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)
        else:
            marks, remaining = f"({', '.join('?' * len(columns))})", iter(rows)
            while part := list(islice(remaining, INSERT_BATCH_ROWS)):
                statement = f"INSERT INTO {into} VALUES {', '.join([marks] * len(part))}"  # noqa: S608 - names of columns
                with connection.wrap_database_errors:
                    connection.connection.execute(statement, [*chain.from_iterable(part)])


def records_of(kind: str) -> QuerySet[Any]:
    """The rows of a kind, from the table that has them."""
    model = MODELS.get(kind)
    return model._default_manager.all() if model else Account.objects.filter(kind=kind)


def with_answers(found: QuerySet[Any]) -> QuerySet[Any]:
    """The same records, each read with its answer; a repayment has none of its own."""
    return found if found.model is Repayment else found.select_related(answer_field(found.model))


def answer_field(model: type[Model]) -> str:
    """The name of the field that leads to a row's answer."""
    return "answer" if model is Account else "answer"


def new_record(kind: str, uuid: str, *, created_by: str) -> Answered:
    """An unsaved record of a kind."""
    if kind == Kind.APPLICATION:
        return Application(uuid=uuid, created_by=created_by)
    if kind == Kind.BORROWER:
        return Borrower(uuid=uuid, created_by=created_by)
    if kind == Kind.KEY_PERSON:
        return KeyPerson(uuid=uuid, created_by=created_by)
    return unsaved_record(kind=kind, uuid=uuid, created_by=created_by)


def unsaved_record(**values: Any) -> Account:
    """Create an unsaved record faster than the model, which computes every default again."""
    record = Account.__new__(Account)
    record.__dict__.update(_DEFAULTS, _state=ModelState(), **values)
    return record


def create_records(records: Sequence[Answered]) -> None:
    """Insert new records of any model, and set their keys."""
    for model, rows in by_model(records).items():
        if model is Account:
            _insert_records(rows)
        else:
            model._default_manager.bulk_create(rows, batch_size=INSERT_BATCH_ROWS)


def by_model(records: Iterable[Answered]) -> dict[type[Answered], list[Any]]:
    """The records of each model."""
    found: dict[type[Answered], list[Any]] = {}
    for record in records:
        found.setdefault(type(record), []).append(record)
    return found


def _insert_records(records: Sequence[Account]) -> None:
    """Insert new records faster than ``bulk_create``, and set their keys."""
    now = timezone.now()
    for record in records:
        record.created_at = record.updated_at = now
    for record, key in zip(records, _next_keys(len(records)), strict=True):
        record.pk = key
    insert_rows(["id", *_FIELDS], ([record.pk, *values] for record, values in _values(records, _FIELDS)))
    for record in records:
        record._state.adding = False


_NEXT = {
    "postgresql": "SELECT nextval(pg_get_serial_sequence('registry_record', 'id')) FROM generate_series(1, %s)",
    # The transaction has the only write lock, so nobody else takes these keys.
    "sqlite": "WITH RECURSIVE next (key) AS (SELECT coalesce(max(seq), 0) + 1 FROM sqlite_sequence"
    " WHERE name = 'registry_record' UNION ALL SELECT key + 1 FROM next LIMIT %s) SELECT key FROM next",
}


def _next_keys(number: int) -> list[int]:
    """Reserve keys, because neither COPY nor executemany returns those that the database chose."""
    return [key for (key,) in fetch_rows(_NEXT[connection.vendor], [number])]


def update_records(records: Sequence[Answered], names: Collection[str]) -> None:
    """Write these fields of saved records of one model.

    Rows of ``Account`` are written one by one, because building one statement for many takes longer.
    """
    for model, rows in by_model(records).items():
        if model is Account:
            _update_rows(rows, names)
        else:
            model._default_manager.bulk_update(rows, names, batch_size=UPDATE_BATCH_ROWS)


def _update_rows(records: Sequence[Account], names: Collection[str]) -> None:
    names = [name for name in _FIELDS if name in names]
    columns = ", ".join(f"{name} = %s" for name in names)
    rows = [[*values, record.pk] for record, values in _values(records, names)]
    if rows:
        with connection.cursor() as cursor:
            cursor.executemany(f"UPDATE registry_record SET {columns} WHERE id = %s", rows)  # noqa: S608 - names of columns


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


def _values(records: Iterable[Account], names: Collection[str]) -> Iterator[tuple[Account, list[Any]]]:
    """Each record with the values of these fields as the database takes them."""
    read = itemgetter(*names)
    for record in records:
        values = zip(names, read(record.__dict__), strict=True)
        yield (
            record,
            [one if one is None or type(one) is str else _prepared(name, one) for name, one in values],
        )


@lru_cache(64)
def _prepared(name: str, value: Any) -> Any:
    """The value for the database, cached because many rows share a time or a flag. Never called for texts."""
    return _FIELDS[name].get_db_prep_save(value, connection)


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


def _record_with(names: Sequence[str], values: Sequence[Any]) -> Account:
    """A stored record with only these fields."""
    record = Account.__new__(Account)
    record.__dict__.update(zip(names, values, strict=True), _state=ModelState())
    record._state.adding = False
    return record


def active_records(kind: str) -> QuerySet[Any]:
    """The records of a kind that are not archived."""
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
    """Records by ID, as far as a link needs them. Any other field costs a query for each record.

    Most pages do this, and with Django's own query it takes ten times as long.
    """
    wanted = {uuid for uuid in uuids if uuid}
    if not wanted:
        return {}
    kind_names = ", ".join(f"'{Kind(kind)}'" for kind in kinds)
    placeholders = ", ".join(["%s"] * len(wanted))
    rows = fetch_rows(
        f"SELECT {', '.join(LINK_COLUMNS)} FROM registry_record"  # noqa: S608 - closed lists
        f" WHERE kind IN ({kind_names}) AND uuid IN ({placeholders})",
        [*wanted],
    )
    records = [_record_with(LINK_COLUMNS, values) for values in rows]
    return {record.uuid: record for record in records}


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
