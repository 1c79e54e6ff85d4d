"""Writes and finds rows of records in number: hides how each database does that quickly, past their model."""

from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache, reduce
from operator import or_
from typing import Any

from django.db import connection
from django.db.models import Field, Q, QuerySet
from django.utils import timezone

from portal.registry.models import Record

_FIELDS = [field for field in Record._meta.concrete_fields if not field.primary_key]
_DEFAULTS: Any = [field.get_default() for field in Record._meta.concrete_fields]
_COLUMNS = [str(field.column) for field in _FIELDS]


def write(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Insert rows of values as the database takes them; the caller's transaction holds them together."""
    into = f"registry_record ({', '.join(columns)})"
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            with cursor.copy(f"COPY {into} FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)
        else:
            marks = ", ".join(["%s"] * len(columns))
            cursor.executemany(f"INSERT INTO {into} VALUES ({marks})", list(rows))  # noqa: S608 - names of columns


def new(**values: Any) -> Record:
    """A record that is not stored yet. Its model, given names, would ask every other field for its default anew."""
    record = Record(*_DEFAULTS)
    for name, value in values.items():
        setattr(record, name, value)
    return record


def create(records: Sequence[Record]) -> None:
    """Insert new records, quicker than their model would; they know their keys afterwards."""
    if not records:  # As after nearly every answer; the database need not be asked.
        return
    now = timezone.now()
    for record in records:
        record.created_at = record.updated_at = now
    for record, key in zip(records, _next_keys(len(records)), strict=True):
        record.pk = key
    write(["id", *_COLUMNS], ([record.pk, *_values(record, _FIELDS)] for record in records))
    for record in records:
        record._state.adding = False


_NEXT = {
    "postgresql": "SELECT nextval(pg_get_serial_sequence('registry_record', 'id')) FROM generate_series(1, %s)",
    # Whoever writes here writes alone, to the end of the transaction.
    "sqlite": "WITH RECURSIVE next (key) AS (SELECT coalesce(max(seq), 0) + 1 FROM sqlite_sequence"
    " WHERE name = 'registry_record' UNION ALL SELECT key + 1 FROM next LIMIT %s) SELECT key FROM next",
}


def _next_keys(number: int) -> list[int]:
    """Keys that nobody else is given: those that the database gave would have to be looked for."""
    with connection.cursor() as cursor:
        cursor.execute(_NEXT[connection.vendor], [number])
        return [key for (key,) in cursor.fetchall()]


def update(records: Sequence[Record], names: Collection[str]) -> None:
    """Write these fields of known records, which were read whole.

    It is done row by row: to put one statement together for many takes longer.
    """
    fields = [field for field in _FIELDS if field.name in names]
    columns = ", ".join(f"{field.column} = %s" for field in fields)
    rows = [[*_values(record, fields), record.pk] for record in records]
    if rows:
        with connection.cursor() as cursor:
            cursor.executemany(f"UPDATE registry_record SET {columns} WHERE id = %s", rows)  # noqa: S608 - names of columns


def stored_of(pairs: Iterable[tuple[str, str]]) -> QuerySet[Record]:
    """The known records among pairs of kind and identifier, of one kind after the other.

    Were all identifiers asked for with all kinds, SQLite would count each with each, and rather read the whole table.
    """
    uuids: dict[str, list[str]] = {}
    for kind, uuid in pairs:
        uuids.setdefault(kind, []).append(uuid)
    of_kinds = (Q(kind=kind, uuid__in=of_kind) for kind, of_kind in uuids.items())
    return Record.objects.filter(reduce(or_, of_kinds)) if uuids else Record.objects.none()


def starting(start: str) -> Q:
    """The condition that an identifier begins so, as each database finds it in the index of kinds and identifiers."""
    if connection.vendor == "postgresql":
        return Q(uuid__startswith=start)
    return Q(uuid__gte=start, uuid__lt=start[:-1] + chr(ord(start[-1]) + 1))


def _values(record: Record, fields: Iterable[Field[Any, Any]]) -> list[Any]:
    held = record.__dict__
    return [
        value if (value := held[field.attname]) is None or type(value) is str else _prepared(field, value)
        for field in fields
    ]


@lru_cache(64)
def _prepared(field: Field[Any, Any], value: Any) -> Any:
    """As the database takes it: in many rows the moment is the same, and the flag. Texts never come here."""
    return field.get_db_prep_save(value, connection)
