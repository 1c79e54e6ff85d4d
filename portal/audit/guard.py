"""Makes the database refuse to change, delete, replace or insert out of order any audit entry.

Hides the triggers of SQLite and PostgreSQL, that rebuilding a table on SQLite loses them, and what would weaken them:
a table's owner can drop its triggers, so on PostgreSQL the portal's role should not own it
(``docker/audit-roles.sql``).
"""

from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

TABLE = "audit_entry"
GENESIS_HASH = "0" * 64
REPAIR_HINT = "Run manage.py upgrade to restore it."


def create(apps: Any, schema_editor: Any) -> None:
    """Create the triggers (for a migration)."""
    install_triggers(schema_editor.connection)


def drop(apps: Any, schema_editor: Any) -> None:
    """Drop the triggers (for a migration that is undone)."""
    remove_triggers(schema_editor.connection)


def install_triggers(connection: BaseDatabaseWrapper) -> None:
    """Create the triggers again if they differ from this version's."""
    if find_differences(connection):
        remove_triggers(connection)
        with connection.cursor() as cursor:
            for statement in _STATEMENTS[connection.vendor]:
                cursor.execute(statement)


def remove_triggers(connection: BaseDatabaseWrapper) -> None:
    """Drop the triggers."""
    where = f" ON {TABLE}" if connection.vendor == "postgresql" else ""
    with connection.cursor() as cursor:
        for name in _DEFINITIONS[connection.vendor]:
            cursor.execute(f"DROP TRIGGER IF EXISTS {name}{where}")


def find_differences(connection: BaseDatabaseWrapper) -> list[str]:
    """Describe how the triggers differ from this version's, compared by what they do."""
    expected = _DEFINITIONS[connection.vendor]
    with connection.cursor() as cursor:
        cursor.execute(_KIND[connection.vendor])
        kinds = {kind for (kind,) in cursor.fetchall()}
        if not kinds:
            return []  # The migration that creates the table hasn't run yet.
        if kinds != {"table"}:
            return [f"{TABLE} isn't a table; something replaced it. Restore a backup."]
        cursor.execute(_FOUND[connection.vendor])
        found = {name: definition for name, *definition in cursor.fetchall()}
    missing = [f"The trigger {name} is missing. {REPAIR_HINT}" for name in expected if name not in found]
    replaced = [
        f"The trigger {name} was changed. {REPAIR_HINT}"
        for name, definition in expected.items()
        if found.get(name, definition) != definition
    ]
    added = [
        f"The audit table has {name}, which the portal didn’t create. Find out who did."
        for name in found
        if name not in expected
    ]
    return missing + replaced + added


def owns_audit_table(connection: BaseDatabaseWrapper) -> bool:
    """Whether this role owns the table, and so could drop its triggers. SQLite has no roles."""
    if connection.vendor != "postgresql":
        return False
    with connection.cursor() as cursor:
        cursor.execute(_OWNED)
        return cursor.fetchone() is not None


OWNER_WARNING = (
    "This role owns the audit table and could drop its triggers. "
    "Create a separate role with docker/audit-roles.sql."
)
_OWNED = """SELECT FROM pg_class
    LEFT JOIN pg_trigger ON tgrelid = pg_class.oid AND NOT tgisinternal LEFT JOIN pg_proc ON pg_proc.oid = tgfoid
    WHERE pg_class.oid = 'audit_entry'::regclass
    AND (pg_has_role(relowner, 'MEMBER') OR pg_has_role(proowner, 'MEMBER'))"""
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
# PostgreSQL's trigger bits: 1 for each row, 2 before, 4 insert, 8 delete, 16 update, 32 truncate. "A" means always.
_DEFINITIONS: dict[str, dict[str, list[Any]]] = {
    "sqlite": {name: [f"CREATE TRIGGER {name} {body}"] for name, body in _SQLITE.items()},
    "postgresql": {
        "audit_entry_no_change": [1 + 2 + 8 + 16, "A", True, "plpgsql", _REFUSE],
        "audit_entry_no_truncate": [2 + 32, "A", True, "plpgsql", _REFUSE],
        "audit_entry_in_order": [1 + 2 + 4, "A", True, "plpgsql", _FOLLOW],
    },
}
# A view of the same name could show other entries and would have none of our triggers.
_KIND = {
    "sqlite": """SELECT type FROM sqlite_master WHERE lower(name) = 'audit_entry'
        UNION SELECT 'temporary' FROM sqlite_temp_master WHERE lower(name) = 'audit_entry'""",
    "postgresql": """SELECT CASE relkind WHEN 'r' THEN 'table' ELSE relkind::text END
        FROM pg_class WHERE oid = to_regclass('audit_entry')""",
}
# Anything else on the table is reported too: another trigger or a rule may bypass ours, the rows of a child table are
# read without being guarded, and a policy hides rows.
_FOUND = {
    "sqlite": "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND lower(tbl_name) = 'audit_entry'",
    "postgresql": """
        SELECT tgname::text, tgtype, tgenabled::text,
            tgqual IS NULL AND tgattr::text = '' AND tgnargs = 0 AND NOT tgdeferrable
                AND tgoldtable IS NULL AND tgnewtable IS NULL AND NOT prosecdef AND proconfig IS NULL,
            lanname::text, prosrc
        FROM pg_trigger JOIN pg_proc ON pg_proc.oid = tgfoid JOIN pg_language ON pg_language.oid = prolang
        WHERE tgrelid = 'audit_entry'::regclass AND NOT tgisinternal
        UNION ALL SELECT 'the rule ' || rulename, 0, '', false, '', ''
        FROM pg_rewrite WHERE ev_class = 'audit_entry'::regclass
        UNION ALL SELECT 'the child table ' || inhrelid::regclass, 0, '', false, '', ''
        FROM pg_inherits WHERE inhparent = 'audit_entry'::regclass
        UNION ALL SELECT 'row-level security', 0, '', false, '', ''
        FROM pg_class WHERE oid = 'audit_entry'::regclass AND relrowsecurity""",
}
