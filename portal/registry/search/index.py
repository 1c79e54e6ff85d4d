"""The search tables: one for each kind of record, kept in step by triggers, without archived records.

Each has the columns ``rowid`` (the record's key) and ``search_text``. Only names of kinds are written into the
statements.
"""

from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from portal.registry.models import NAMED_KINDS, Kind
from portal.registry.search.find import backend_of
from portal.registry.search.texts import index_of


def create(apps: Any, schema_editor: Any) -> None:
    """Create the tables with the texts of all records."""
    connection = schema_editor.connection
    backend = backend_of(connection)
    for statement in backend.PREPARATION:
        schema_editor.execute(statement)
    for kind in NAMED_KINDS:
        for statement in backend.TABLE:
            schema_editor.execute(_fill(connection, statement, kind))
    create_missing_triggers(using=connection.alias)


def drop(apps: Any, schema_editor: Any) -> None:
    """Drop the tables."""
    backend = backend_of(schema_editor.connection)
    for kind in NAMED_KINDS:
        for statement in backend.REMOVAL:
            schema_editor.execute(_fill(schema_editor.connection, statement, kind))


def create_missing_triggers(*, using: str, **_: Any) -> None:
    """Create triggers again that SQLite dropped when a migration rebuilt the table of records."""
    connection = connections[using]
    backend = backend_of(connection)
    with connection.cursor() as cursor:
        tables = connection.introspection.table_names(cursor)
        for kind in NAMED_KINDS:
            if index_of(kind) in tables:
                for name, definition in backend.TRIGGERS.items():
                    statement = f"{backend.CREATE_TRIGGER} {{index}}_{name} {definition}"
                    cursor.execute(_fill(connection, statement, kind))


def _fill(connection: BaseDatabaseWrapper, statement: str, kind: Kind) -> str:
    names = {"index": index_of(kind), "kind": kind.value}
    if "{schema}" in statement:
        with connection.cursor() as cursor:
            cursor.execute("SELECT quote_ident(current_schema())")
            names["schema"] = str(cursor.fetchone()[0])
    return statement.format(**names)
