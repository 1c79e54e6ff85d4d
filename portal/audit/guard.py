"""Makes the database refuse to change, delete, replace or insert out of order any audit entry.

Hides the triggers of SQLite and PostgreSQL, and that rebuilding a table on SQLite loses them. A table's owner can drop
its triggers, so on PostgreSQL the portal's role should not own it (``docker/audit-roles.sql``).
"""

from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

TABLE = "audit_entry"
GENESIS_HASH = "0" * 64


def create(apps: Any, schema_editor: Any) -> None:
    install_triggers(schema_editor.connection)


def drop(apps: Any, schema_editor: Any) -> None:
    """Drop the triggers (for a migration that is undone)."""
    remove_triggers(schema_editor.connection)


def install_triggers(connection: BaseDatabaseWrapper) -> None:
    """Create the triggers, in place of those that exist."""
    remove_triggers(connection)
    with connection.cursor() as cursor:
        for statement in _STATEMENTS[connection.vendor]:
            cursor.execute(statement)


def remove_triggers(connection: BaseDatabaseWrapper) -> None:
    where = f" ON {TABLE}" if connection.vendor == "postgresql" else ""
    with connection.cursor() as cursor:
        for name in _NAMES[connection.vendor]:
            cursor.execute(f"DROP TRIGGER IF EXISTS {name}{where}")


def missing_triggers(connection: BaseDatabaseWrapper) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(_FOUND[connection.vendor])
        found = {name for (name,) in cursor.fetchall()}
    return [name for name in _NAMES[connection.vendor] if name not in found]


_REFUSE = """
        BEGIN
            RAISE EXCEPTION 'Audit entries are append-only.' USING ERRCODE = 'integrity_constraint_violation';
        END """
_FOLLOW = """
        DECLARE last record;
        BEGIN
            EXECUTE format('SELECT id, hash FROM %I.audit_entry ORDER BY id DESC LIMIT 1', tg_table_schema) INTO last;
            IF new.id <> 1 + coalesce(last.id, 0) OR new.previous_hash <> coalesce(last.hash, repeat('0', 64)) THEN
                RAISE EXCEPTION 'Audit entries only follow the last one.'
                    USING ERRCODE = 'integrity_constraint_violation';
            END IF;
            RETURN new;
        END """
# The third trigger also stops INSERT OR REPLACE, which deletes rows without firing the others. It names the trail's
# schema on PostgreSQL, because a temporary table of the same name would come first.
_SQLITE = {
    "audit_entry_no_update": """BEFORE UPDATE ON audit_entry
        BEGIN SELECT RAISE(ABORT, 'Audit entries are append-only.'); END""",
    "audit_entry_no_delete": """BEFORE DELETE ON audit_entry
        BEGIN SELECT RAISE(ABORT, 'Audit entries are append-only.'); END""",
    "audit_entry_in_order": """BEFORE INSERT ON audit_entry
        WHEN new.id IS NOT 1 + coalesce((SELECT max(id) FROM audit_entry), 0)
            OR new.previous_hash IS NOT coalesce(
                (SELECT hash FROM audit_entry ORDER BY id DESC LIMIT 1), hex(zeroblob(32)))
            OR EXISTS (SELECT 1 FROM audit_entry WHERE hash = new.hash)
            OR EXISTS (SELECT 1 FROM audit_entry WHERE intent_id = new.intent_id AND phase = new.phase
                AND phase <> 'event')
        BEGIN SELECT RAISE(ABORT, 'Audit entries only follow the last one.'); END""",
}
_STATEMENTS = {
    "sqlite": [f"CREATE TRIGGER {name} {body}" for name, body in _SQLITE.items()],
    "postgresql": [
        f"CREATE OR REPLACE FUNCTION audit_entry_refuse() RETURNS trigger LANGUAGE plpgsql AS $${_REFUSE}$$",
        f"CREATE OR REPLACE FUNCTION audit_entry_follow() RETURNS trigger LANGUAGE plpgsql AS $${_FOLLOW}$$",
        """CREATE TRIGGER audit_entry_no_change BEFORE UPDATE OR DELETE ON audit_entry
        FOR EACH ROW EXECUTE FUNCTION audit_entry_refuse()""",
        """CREATE TRIGGER audit_entry_no_truncate BEFORE TRUNCATE ON audit_entry
        FOR EACH STATEMENT EXECUTE FUNCTION audit_entry_refuse()""",
        """CREATE TRIGGER audit_entry_in_order BEFORE INSERT ON audit_entry
        FOR EACH ROW EXECUTE FUNCTION audit_entry_follow()""",
        # Also active in a session that declares itself a replica.
        "ALTER TABLE audit_entry ENABLE ALWAYS TRIGGER audit_entry_no_change",
        "ALTER TABLE audit_entry ENABLE ALWAYS TRIGGER audit_entry_no_truncate",
        "ALTER TABLE audit_entry ENABLE ALWAYS TRIGGER audit_entry_in_order",
    ],
}
_NAMES = {
    "sqlite": list(_SQLITE),
    "postgresql": ["audit_entry_no_change", "audit_entry_no_truncate", "audit_entry_in_order"],
}
_FOUND = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'audit_entry'",
    "postgresql": "SELECT tgname FROM pg_trigger WHERE tgrelid = 'audit_entry'::regclass AND tgenabled <> 'D'",
}
