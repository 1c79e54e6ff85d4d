"""The index behind the search in payloads: one of trigrams on PostgreSQL, which keeps it in step by itself. On SQLite a
table of trigrams for values and one of whole words for digests, kept in step by triggers: a digest is asked for only
whole, and its trigrams would take more room than all else that is kept of a message.
"""

from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from portal.messaging.facts import FACT

INDEX = "messaging_search"
FACTS = "messaging_facts"


def create(apps: Any, schema_editor: Any) -> None:
    """Make the index and take in what is saved already."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm")
        schema_editor.execute(
            f"CREATE INDEX {INDEX} ON messaging_message USING gin (search_text gin_trgm_ops)"
        )
        return
    schema_editor.execute(
        f"CREATE VIRTUAL TABLE {INDEX} USING fts5(search_text, content='', tokenize='trigram')"
    )
    schema_editor.execute(
        f"CREATE VIRTUAL TABLE {FACTS} USING fts5(search_text, content='', tokenize='ascii', detail='none')"
    )
    for table, part in _parts("messaging_message").items():
        schema_editor.execute(
            f"INSERT INTO {table} (rowid, search_text) SELECT id, {part} FROM messaging_message ORDER BY id"  # noqa: S608 - fixed names
        )
    keep_in_step(schema_editor.connection)


def drop(apps: Any, schema_editor: Any) -> None:
    """Take the index away."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(f"DROP INDEX IF EXISTS {INDEX}")
        return
    for name in _TRIGGERS:
        schema_editor.execute(f"DROP TRIGGER IF EXISTS {INDEX}_{name}")
    for table in (INDEX, FACTS):
        schema_editor.execute(f"DROP TABLE IF EXISTS {table}")


def rebuild(apps: Any, schema_editor: Any) -> None:
    """Make it again on SQLite, from the messages that are kept."""
    if schema_editor.connection.vendor == "sqlite":
        drop(apps, schema_editor)
        create(apps, schema_editor)


def keep_in_step(connection: BaseDatabaseWrapper) -> None:
    """Make the triggers that are missing: a migration that rebuilds the table of messages on SQLite drops them."""
    if connection.vendor != "sqlite":
        return
    with connection.cursor() as cursor:
        if INDEX in connection.introspection.table_names(cursor):
            for name, statement in _TRIGGERS.items():
                cursor.execute(f"CREATE TRIGGER IF NOT EXISTS {INDEX}_{name} {statement}")


def _parts(row: str) -> dict[str, str]:
    """What of a row's search text goes into which table: the digests stand behind all values."""
    first_fact = f"instr({row}.search_text, '{FACT}')"
    return {
        INDEX: f"substr({row}.search_text, 1, {first_fact} - 1)",
        FACTS: f"substr({row}.search_text, {first_fact})",
    }


def _trigger(moment: str, statements: list[str]) -> str:
    return f"AFTER {moment} ON messaging_message BEGIN {' '.join(statements)} END"


# A message is added and taken away, never changed.
_TRIGGERS = {
    "insert": _trigger(
        "INSERT",
        [
            f"INSERT INTO {table} (rowid, search_text) VALUES (new.id, {part});"  # noqa: S608 - fixed names
            for table, part in _parts("new").items()
        ],
    ),
    "delete": _trigger(
        "DELETE",
        [
            f"INSERT INTO {table} ({table}, rowid, search_text) VALUES ('delete', old.id, {part});"  # noqa: S608
            for table, part in _parts("old").items()
        ],
    ),
}
