"""The tables of texts behind search: one for each kind of record, kept in step by triggers, without archived records.

Each has the columns ``rowid``, the record's key, and ``search_text``. Only names of kinds enter the statements.
"""

from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from portal.registry.models import SEARCHED_KINDS, Kind
from portal.registry.search.find import backend_of
from portal.registry.search.texts import index_of


def create(apps: Any, schema_editor: Any) -> None:
    """Create the tables, with the texts of all records."""
    connection = schema_editor.connection
    backend = backend_of(connection)
    for statement in backend.PREPARATION:
        schema_editor.execute(statement)
    for kind in SEARCHED_KINDS:
        for statement in backend.TABLE:
            schema_editor.execute(_fill(connection, statement, kind))
    create_missing_triggers(connection)


def create_tables(apps: Any, schema_editor: Any) -> None:
    """Replace the partial indexes that PostgreSQL had before; writers wait, readers don't."""
    connection = schema_editor.connection
    with connection.cursor() as cursor:
        if index_of(Kind.BORROWER) in connection.introspection.table_names(cursor):
            return
    for kind in SEARCHED_KINDS:
        schema_editor.execute(f"ALTER INDEX {index_of(kind)} RENAME TO {index_of(kind)}_before")
    schema_editor.execute("LOCK TABLE registry_record IN SHARE ROW EXCLUSIVE MODE")
    create(apps, schema_editor)


def drop_indexes(apps: Any, schema_editor: Any) -> None:
    """Drop those indexes, in a transaction of their own, because nobody can read while it runs."""
    if schema_editor.connection.vendor == "postgresql":
        for kind in SEARCHED_KINDS:
            schema_editor.execute(f"DROP INDEX IF EXISTS {index_of(kind)}_before")


def renew_triggers(apps: Any, schema_editor: Any) -> None:
    """Give the triggers their newest definition."""
    connection = schema_editor.connection
    backend = backend_of(connection)
    for kind in SEARCHED_KINDS:
        for statement in backend.RENEWAL:
            schema_editor.execute(_fill(connection, statement, kind))
    create_missing_triggers(connection)


def drop(apps: Any, schema_editor: Any) -> None:
    """Drop the tables."""
    backend = backend_of(schema_editor.connection)
    for kind in SEARCHED_KINDS:
        for statement in backend.REMOVAL:
            schema_editor.execute(_fill(schema_editor.connection, statement, kind))


def create_missing_triggers(connection: BaseDatabaseWrapper) -> None:
    """Create them again after a migration that rebuilt the table of records on SQLite, which drops them."""
    backend = backend_of(connection)
    with connection.cursor() as cursor:
        tables = connection.introspection.table_names(cursor)
        for kind in SEARCHED_KINDS:
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
