"""What the database lets this role do, where web and worker have one that owns nothing (``docker/audit-roles.sql``).

Hides where PostgreSQL keeps it. SQLite has no roles: there everybody may do everything.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import DatabaseError, connection, transaction

NOT_THE_OWNER = (
    "This role may not change the tables. Put the address of the role that owns them into DATABASE_URL."
)
# Each asks for the tables of this schema alone; "r" is a table, "S" a sequence.
_MAY_CHANGE = """SELECT has_schema_privilege(current_schema(), 'CREATE') AND NOT EXISTS (
    SELECT FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace
    AND NOT pg_has_role(relowner, 'USAGE'))"""
_UNREADABLE = """SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace
    AND NOT has_table_privilege(oid, 'SELECT') ORDER BY relname"""
_HELD = """SELECT oid::regclass::text, string_agg(privilege_type, ', '),
    CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END
    FROM pg_class, aclexplode(relacl) WHERE relkind IN ('r', 'S') AND relnamespace = current_schema()::regnamespace
    AND grantee <> relowner GROUP BY oid, grantee"""


def is_lack_of_rights(error: DatabaseError) -> bool:
    """Whether the database answered, and refused this role."""
    return getattr(error.__cause__, "sqlstate", None) == "42501"


def unreadable() -> list[str]:
    """Tables that the owner made since this role was granted anything."""
    return [name for (name,) in _asked(_UNREADABLE)]


def may_change_tables() -> bool:
    """Whether this role may make, change and drop them."""
    return all(may for (may,) in _asked(_MAY_CHANGE))


@contextmanager
def kept() -> Iterator[bool]:
    """Give other roles what they held on tables that are dropped and made again; whether there was anything."""
    held = _asked(_HELD)
    yield bool(held)
    with transaction.atomic(), connection.cursor() as cursor:
        for name, privileges, role in held:
            cursor.execute("SELECT to_regclass(%s) IS NOT NULL", [name])
            if cursor.fetchone() == (True,):
                cursor.execute(f"GRANT {privileges} ON {name} TO {role}")


def _asked(question: str) -> list[tuple[str, ...]]:
    if connection.vendor != "postgresql":
        return []
    with connection.cursor() as cursor:
        cursor.execute(question)
        return list(cursor.fetchall())
