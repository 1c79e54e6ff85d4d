"""What this database role may do. Web and worker can use one that owns nothing (``docker/audit-roles.sql``).

Hides where PostgreSQL stores permissions. SQLite has no roles: everything is allowed.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import DatabaseError, connection, transaction

from portal.runtime.database import fetch_rows

NOT_THE_OWNER = "This role can’t change the tables. Set DATABASE_URL to the role that owns them."
# Tables ("r") and sequences ("S") of this schema only.
_MAY_CHANGE = """SELECT has_schema_privilege(current_schema(), 'CREATE') AND NOT EXISTS (
    SELECT FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace
    AND NOT pg_has_role(relowner, 'USAGE'))"""
_UNREADABLE = """SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace
    AND NOT has_table_privilege(oid, 'SELECT') ORDER BY relname"""
_GRANTS = """SELECT oid::regclass::text, string_agg(privilege_type, ', '),
    CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END
    FROM pg_class, aclexplode(relacl) WHERE relkind IN ('r', 'S') AND relnamespace = current_schema()::regnamespace
    AND grantee <> relowner GROUP BY oid, grantee"""


def is_lack_of_rights(error: DatabaseError) -> bool:
    """Whether the database answered but denied this role."""
    return getattr(error.__cause__, "sqlstate", None) == "42501"


def unreadable_tables() -> list[str]:
    """List tables that the owner created after this role got its grants."""
    return [name for (name,) in _query(_UNREADABLE)]


def has_extension(name: str) -> bool:
    """Whether an extension is installed in this database."""
    return bool(_query("SELECT extname FROM pg_extension WHERE extname = %s", name))


def may_change_tables() -> bool:
    """Whether this role may create, change and drop tables."""
    return all(may for (may,) in _query(_MAY_CHANGE))


@contextmanager
def preserved_grants() -> Iterator[bool]:
    """Restore other roles' grants on tables that the block replaces; yield whether there were any."""
    grants = _query(_GRANTS)
    yield bool(grants)
    with transaction.atomic(), connection.cursor() as cursor:
        for name, privileges, role in grants:
            cursor.execute("SELECT to_regclass(%s) IS NOT NULL", [name])
            if cursor.fetchone() == (True,):
                cursor.execute(f"GRANT {privileges} ON {name} TO {role}")


def _query(question: str, *values: str) -> list[tuple[str, ...]]:
    return fetch_rows(question, values) if connection.vendor == "postgresql" else []
