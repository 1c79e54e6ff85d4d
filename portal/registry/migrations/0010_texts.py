"""On PostgreSQL each kind has a table of its texts, with statistics of its own: it plans by how frequent a word is there.

Indexes of one kind alone begin without it: what stands in the condition of an index, PostgreSQL does not look for in its
columns, and reads all of it.
"""

from typing import Any

from django.db import migrations

from portal.registry.search_index import create_tables

OF_ONE_KIND = (
    "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'registry_record'"
    " AND indexdef LIKE '%(kind, %' AND indexdef LIKE '%(kind)::text = %'"
)


def leave_the_kind_out(apps: Any, schema_editor: Any) -> None:
    """The same indexes without the column that is the same in all of their rows."""
    if schema_editor.connection.vendor != "postgresql":
        return
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(OF_ONE_KIND)
        for name, statement in cursor.fetchall():
            cursor.execute(f"DROP INDEX {name}")
            cursor.execute(statement.replace("(kind, ", "(", 1))


class Migration(migrations.Migration):
    dependencies = [
        ("registry", "0009_names"),
    ]

    operations = [
        migrations.RunPython(create_tables, migrations.RunPython.noop),
        migrations.RunPython(leave_the_kind_out, migrations.RunPython.noop),
    ]
