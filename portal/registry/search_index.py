"""The index behind search: one for each kind of record, over records that are not archived.

On SQLite a table of trigrams for each kind, kept in step by triggers; on PostgreSQL a partial trigram index for each
kind, which it keeps in step by itself. Nothing but the names of kinds enters the statements.
"""

from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from portal.registry.models import SEARCHED_KINDS, Kind


def index_of(kind: Kind) -> str:
    """The name of the kind's index."""
    return f"registry_search_{kind.value}"


def create(apps: Any, schema_editor: Any) -> None:
    """Make the index and take in what is known already."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm")
    for kind in SEARCHED_KINDS:
        for statement in _STATEMENTS[schema_editor.connection.vendor]:
            schema_editor.execute(statement.format(index=index_of(kind), kind=kind.value))
    if schema_editor.connection.vendor == "sqlite":
        keep_in_step(schema_editor.connection)


def drop(apps: Any, schema_editor: Any) -> None:
    """Take the index away."""
    for kind in SEARCHED_KINDS:
        if schema_editor.connection.vendor == "postgresql":
            schema_editor.execute(f"DROP INDEX IF EXISTS {index_of(kind)}")
            continue
        for name in _TRIGGERS:
            schema_editor.execute(f"DROP TRIGGER IF EXISTS {index_of(kind)}_{name}")
        schema_editor.execute(f"DROP TABLE IF EXISTS {index_of(kind)}")


def keep_in_step(connection: BaseDatabaseWrapper) -> None:
    """Make the triggers that are missing: a migration that rebuilds the table of records on SQLite drops them."""
    if connection.vendor != "sqlite":
        return
    with connection.cursor() as cursor:
        tables = connection.introspection.table_names(cursor)
        for kind in SEARCHED_KINDS:
            if index_of(kind) not in tables:
                continue
            for name, statement in _TRIGGERS.items():
                head = f"CREATE TRIGGER IF NOT EXISTS {index_of(kind)}_{name}"
                cursor.execute(head + statement.format(index=index_of(kind), kind=kind.value))


_STATEMENTS = {
    "sqlite": [
        "CREATE VIRTUAL TABLE {index} USING fts5(search_text, content='', tokenize='trigram')",
        "INSERT INTO {index} (rowid, search_text) SELECT id, search_text FROM registry_record"
        " WHERE kind = '{kind}' AND archived_at IS NULL ORDER BY id",
    ],
    "postgresql": [
        "CREATE INDEX {index} ON registry_record USING gin (search_text gin_trgm_ops)"
        " WHERE kind = '{kind}' AND archived_at IS NULL",
    ],
}
# A table without content forgets a row only when it is told the text that it took in.
_TRIGGERS = {
    "insert": """ AFTER INSERT ON registry_record WHEN new.kind = '{kind}' AND new.archived_at IS NULL BEGIN
        INSERT INTO {index} (rowid, search_text) VALUES (new.id, new.search_text);
    END""",
    "delete": """ AFTER DELETE ON registry_record WHEN old.kind = '{kind}' AND old.archived_at IS NULL BEGIN
        INSERT INTO {index} ({index}, rowid, search_text) VALUES ('delete', old.id, old.search_text);
    END""",
    "update": """ AFTER UPDATE OF search_text, archived_at ON registry_record WHEN new.kind = '{kind}'
        AND (old.search_text <> new.search_text OR (old.archived_at IS NULL) <> (new.archived_at IS NULL)) BEGIN
        INSERT INTO {index} ({index}, rowid, search_text)
            SELECT 'delete', old.id, old.search_text WHERE old.archived_at IS NULL;
        INSERT INTO {index} (rowid, search_text)
            SELECT new.id, new.search_text WHERE new.archived_at IS NULL;
    END""",
}
