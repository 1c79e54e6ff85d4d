"""Helpers for the test database on SQLite and PostgreSQL: its URL, its content, locks and full disks."""

import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import psycopg
from django.apps import apps
from django.core.management import call_command
from django.db import OperationalError, connection, connections
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from portal.accounts.encryption import EncryptedField

FOLDER = tempfile.TemporaryDirectory()
"""The data folder of this process."""


def database_url() -> str:
    """Return the database URL for another process."""
    found = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{found['NAME']}"
    return "postgres://{USER}:{PASSWORD}@{HOST}:{PORT}/{NAME}".format(**found)


def reject_inserts(table: str, when: str = "1 = 1") -> None:
    """Make inserts into a table fail, or only inserts that match a condition."""
    statements = {
        "sqlite": [
            f"CREATE TRIGGER refuse BEFORE INSERT ON {table} WHEN {when} "
            "BEGIN SELECT RAISE(ABORT, 'the disk is full'); END",
        ],
        "postgresql": [
            "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'the disk is full'; END $$",
            f"CREATE TRIGGER refuse BEFORE INSERT ON {table} FOR EACH ROW WHEN ({when}) EXECUTE FUNCTION refuse()",
        ],
    }
    run(*statements[connection.vendor])


def allow_inserts(table: str) -> None:
    """Let inserts into the table succeed again."""
    run("DROP TRIGGER refuse" + (f" ON {table}" if connection.vendor == "postgresql" else ""))


def forget_connections() -> None:
    """Close the connections of this thread and of the pool, so that a child process opens its own."""
    connections.close_all()
    if connection.vendor == "postgresql":
        connection.close_pool()  # type: ignore[attr-defined]  # PostgreSQL only


def run(*statements: str) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def stored_bytes() -> bytes:
    """Return everything stored: the bytes of SQLite's files, or the rows of PostgreSQL's tables."""
    if connection.vendor == "sqlite":
        # Read in another process: closing a file in this one would drop SQLite's locks on it.
        name = Path(str(connection.settings_dict["NAME"]))
        files = [file for file in name.parent.iterdir() if file.name.startswith(name.name)]
        return subprocess.run(["cat", *files], capture_output=True, check=True).stdout
    with connection.cursor() as cursor:
        found = []
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT every::text FROM "{table}" every')
            found += [row for (row,) in cursor.fetchall()]
    return "\n".join(found).encode()


def decrypted_bytes() -> bytes:
    """Return what is stored in encrypted fields, in plain text."""
    fields = [
        (model, field.name)
        for model in apps.get_models()
        for field in model._meta.concrete_fields
        if isinstance(field, EncryptedField)
    ]
    values = [value for model, name in fields for value in model._base_manager.values_list(name, flat=True)]
    return repr(values).encode()


@contextmanager
def locked() -> Iterator[None]:
    """Hold a write lock from another connection; reads still work."""
    if connection.vendor == "sqlite":
        with closing(sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            yield
            other.execute("ROLLBACK")
    else:
        with psycopg.connect(database_url()) as other:
            tables = ", ".join(f'"{name}"' for name in connection.introspection.table_names())
            other.execute(f"LOCK TABLE {tables} IN EXCLUSIVE MODE")
            yield
            other.rollback()


@contextmanager
def full() -> Iterator[None]:
    """Make writes fail: SQLite's file cannot grow, and PostgreSQL is read-only."""
    if connection.vendor == "sqlite":
        run(
            "CREATE TABLE filler (content)", "PRAGMA max_page_count=1"
        )  # SQLite never sets it below the present size.
        with suppress(OperationalError):
            while True:
                run("INSERT INTO filler VALUES (zeroblob(1000))")
        yield
        run("PRAGMA max_page_count=1000000000", "DROP TABLE filler")
    else:
        name = connection.settings_dict["NAME"]
        run(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
        forget_connections()
        yield
        with psycopg.connect(database_url(), autocommit=True) as other:
            other.execute("SET default_transaction_read_only = off")
            other.execute(f'ALTER DATABASE "{name}" RESET default_transaction_read_only')
        forget_connections()


def go_back(app: str, name: str) -> None:
    """Undo the migrations of an app after this one, which a new database has as one."""
    recorder = MigrationRecorder(connection)
    *_, last = sorted(name for label, name in recorder.applied_migrations() if label == app)
    # What has records for all of its steps counts as the one that replaces them, also that of messages.
    recorder.migration_qs.filter(app=app, name=last).delete()
    recorder.migration_qs.filter(name__contains="squashed", app__in=[app, "messaging"]).delete()
    loader = MigrationLoader(connection)
    migration = loader.disk_migrations[app, last]
    with connection.schema_editor(atomic=migration.atomic) as editor:
        migration.unapply(loader.project_state(migration.dependencies), editor)
    call_command("migrate", app, name, verbosity=0)
