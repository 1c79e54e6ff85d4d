"""Makes the database itself refuse to change, remove, replace or slip in an audit entry.

Hides the triggers of SQLite and PostgreSQL, that rebuilding a table on SQLite loses them, and what would weaken them:
the owner of a table can take its triggers away, so on PostgreSQL the portal's own role should not own it
(``docker/audit-roles.sql``).
"""

from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

TABLE = "audit_entry"
FIRST = "0" * 64


def create(apps: Any, schema_editor: Any) -> None:
    """Make the triggers (for a migration)."""
    install(schema_editor.connection)


def renew(apps: Any, schema_editor: Any) -> None:
    """Make PostgreSQL's triggers as they are made today (for a migration)."""
    if schema_editor.connection.vendor == "postgresql":
        remove(schema_editor.connection)
        install(schema_editor.connection)


def drop(apps: Any, schema_editor: Any) -> None:
    """Take the triggers away (for a migration that is undone)."""
    remove(schema_editor.connection)


def install(connection: BaseDatabaseWrapper) -> None:
    """Make the triggers that are missing, where there is a table to guard."""
    with connection.cursor() as cursor:
        if TABLE in connection.introspection.table_names(cursor) and missing(connection):
            for statement in _STATEMENTS[connection.vendor]:
                cursor.execute(statement)


def remove(connection: BaseDatabaseWrapper) -> None:
    """Take the triggers away."""
    where = f" ON {TABLE}" if connection.vendor == "postgresql" else ""
    with connection.cursor() as cursor:
        for name in _TRIGGERS[connection.vendor]:
            cursor.execute(f"DROP TRIGGER IF EXISTS {name}{where}")


def missing(connection: BaseDatabaseWrapper) -> list[str]:
    """The triggers that are not there, or not in force."""
    with connection.cursor() as cursor:
        cursor.execute(_IN_FORCE[connection.vendor])
        found = {name for (name,) in cursor.fetchall()}
    return [name for name in _TRIGGERS[connection.vendor] if name not in found]


def weaknesses(connection: BaseDatabaseWrapper) -> list[str]:
    """What keeps the database from refusing, as sentences."""
    found = [
        f"The trigger {name} is missing or may be passed by; manage.py upgrade makes it again."
        for name in missing(connection)
    ]
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(_OWNED)
            if cursor.fetchone():
                found.append(
                    "This role owns the audit's table and could take its triggers away. "
                    "docker/audit-roles.sql says what another one needs."
                )
    return found


_TRIGGERS = {
    "sqlite": ["audit_entry_no_update", "audit_entry_no_delete", "audit_entry_in_order"],
    "postgresql": ["audit_entry_no_change", "audit_entry_no_truncate", "audit_entry_in_order"],
}
_IN_FORCE = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'audit_entry'",
    "postgresql": "SELECT tgname FROM pg_trigger WHERE tgrelid = 'audit_entry'::regclass AND tgenabled = 'A'",
}
_OWNED = "SELECT 1 FROM pg_class WHERE oid = 'audit_entry'::regclass AND pg_has_role(relowner, 'MEMBER')"
# The third one also stops what the others do not see: INSERT OR REPLACE removes rows without firing a trigger. It says
# where PostgreSQL finds the trail: a temporary table of that name would come first.
_STATEMENTS = {
    "sqlite": [
        "CREATE TRIGGER IF NOT EXISTS audit_entry_no_update BEFORE UPDATE ON audit_entry"
        " BEGIN SELECT RAISE(ABORT, 'Audit entries are append-only.'); END",
        "CREATE TRIGGER IF NOT EXISTS audit_entry_no_delete BEFORE DELETE ON audit_entry"
        " BEGIN SELECT RAISE(ABORT, 'Audit entries are append-only.'); END",
        """CREATE TRIGGER IF NOT EXISTS audit_entry_in_order BEFORE INSERT ON audit_entry
        WHEN new.id IS NOT 1 + coalesce((SELECT max(id) FROM audit_entry), 0)
            OR new.previous_hash IS NOT coalesce(
                (SELECT hash FROM audit_entry ORDER BY id DESC LIMIT 1), hex(zeroblob(32)))
            OR EXISTS (SELECT 1 FROM audit_entry WHERE hash = new.hash)
            OR EXISTS (SELECT 1 FROM audit_entry WHERE intent_id = new.intent_id AND phase = new.phase
                AND phase <> 'event')
        BEGIN SELECT RAISE(ABORT, 'Audit entries only follow the last one.'); END""",
    ],
    "postgresql": [
        """CREATE OR REPLACE FUNCTION audit_entry_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            RAISE EXCEPTION 'Audit entries are append-only.' USING ERRCODE = 'integrity_constraint_violation';
        END $$""",
        """CREATE OR REPLACE FUNCTION audit_entry_follow() RETURNS trigger LANGUAGE plpgsql AS $$
        DECLARE last record;
        BEGIN
            EXECUTE format('SELECT id, hash FROM %I.audit_entry ORDER BY id DESC LIMIT 1', tg_table_schema) INTO last;
            IF new.id <> 1 + coalesce(last.id, 0) OR new.previous_hash <> coalesce(last.hash, repeat('0', 64)) THEN
                RAISE EXCEPTION 'Audit entries only follow the last one.'
                    USING ERRCODE = 'integrity_constraint_violation';
            END IF;
            RETURN new;
        END $$""",
        """CREATE OR REPLACE TRIGGER audit_entry_no_change BEFORE UPDATE OR DELETE ON audit_entry
        FOR EACH ROW EXECUTE FUNCTION audit_entry_refuse()""",
        """CREATE OR REPLACE TRIGGER audit_entry_no_truncate BEFORE TRUNCATE ON audit_entry
        FOR EACH STATEMENT EXECUTE FUNCTION audit_entry_refuse()""",
        """CREATE OR REPLACE TRIGGER audit_entry_in_order BEFORE INSERT ON audit_entry
        FOR EACH ROW EXECUTE FUNCTION audit_entry_follow()""",
        # In force also for a session that calls itself a replica.
        "ALTER TABLE audit_entry ENABLE ALWAYS TRIGGER audit_entry_no_change",
        "ALTER TABLE audit_entry ENABLE ALWAYS TRIGGER audit_entry_no_truncate",
        "ALTER TABLE audit_entry ENABLE ALWAYS TRIGGER audit_entry_in_order",
    ],
}
