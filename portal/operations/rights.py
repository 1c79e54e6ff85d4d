"""What the database lets this role do, where web and worker have one that owns nothing (``docker/audit-roles.sql``).

Hides where PostgreSQL keeps it. SQLite has no roles: there everybody may do everything.
"""

from django.db import DatabaseError, connection

# Each asks for the tables of this schema alone; "r" is a table, "S" a sequence.
_UNREADABLE = """SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace
    AND NOT has_table_privilege(oid, 'SELECT') ORDER BY relname"""


def is_lack_of_rights(error: DatabaseError) -> bool:
    """Whether the database answered, and refused this role."""
    return getattr(error.__cause__, "sqlstate", None) == "42501"


def unreadable() -> list[str]:
    """Tables that the owner made since this role was granted anything."""
    return [name for (name,) in _asked(_UNREADABLE)]


def _asked(question: str) -> list[tuple[str, ...]]:
    if connection.vendor != "postgresql":
        return []
    with connection.cursor() as cursor:
        cursor.execute(question)
        return list(cursor.fetchall())
