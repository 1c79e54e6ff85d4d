"""The index behind the search in payloads: a table of trigrams kept in step by triggers on SQLite, a trigram index on
PostgreSQL, which keeps it in step by itself.
"""

from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

INDEX = "messaging_search"


def create(apps: Any, schema_editor: Any) -> None:
    """Make the index."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm")
        schema_editor.execute(
            f"CREATE INDEX {INDEX} ON messaging_message USING gin (search_text gin_trgm_ops)"
        )
        return
    schema_editor.execute(
        f"CREATE VIRTUAL TABLE {INDEX} USING fts5(search_text, content='', tokenize='trigram')"
    )
    keep_in_step(schema_editor.connection)


def drop(apps: Any, schema_editor: Any) -> None:
    """Take the index away."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(f"DROP INDEX IF EXISTS {INDEX}")
        return
    for name in _TRIGGERS:
        schema_editor.execute(f"DROP TRIGGER IF EXISTS {INDEX}_{name}")
    schema_editor.execute(f"DROP TABLE IF EXISTS {INDEX}")


def keep_in_step(connection: BaseDatabaseWrapper) -> None:
    """Make the triggers that are missing: a migration that rebuilds the table of messages on SQLite drops them."""
    if connection.vendor != "sqlite":
        return
    with connection.cursor() as cursor:
        if INDEX in connection.introspection.table_names(cursor):
            for name, statement in _TRIGGERS.items():
                cursor.execute(f"CREATE TRIGGER IF NOT EXISTS {INDEX}_{name} {statement}")


# A message is added and taken away, never changed.
_TRIGGERS = {
    "insert": """AFTER INSERT ON messaging_message BEGIN
        INSERT INTO messaging_search (rowid, search_text) VALUES (new.id, new.search_text);
    END""",
    "delete": """AFTER DELETE ON messaging_message BEGIN
        INSERT INTO messaging_search (messaging_search, rowid, search_text)
            VALUES ('delete', old.id, old.search_text);
    END""",
}
