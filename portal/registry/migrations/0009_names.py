"""Pages deep in the order of names: PostgreSQL takes them from the index alone only where that holds the name itself."""

from typing import Any

from django.db import migrations


def hold(apps: Any, schema_editor: Any) -> None:
    """The same index, with what its expression is made of beside it."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("DROP INDEX borrowers_by_label")
        schema_editor.execute(
            "CREATE INDEX borrowers_by_label ON registry_record (kind, lower(label), id) INCLUDE (label)"
            " WHERE kind = 'borrower' AND archived_at IS NULL"
        )


class Migration(migrations.Migration):
    dependencies = [
        ("registry", "0008_repayments"),
    ]

    operations = [
        migrations.RunPython(hold, migrations.RunPython.noop),
    ]
