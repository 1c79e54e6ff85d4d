"""The index of kinds and identifiers finds on PostgreSQL how an identifier begins, too; SQLite's does already.

So the texts of records need not hold their identifiers, which had most of the indexes of texts to themselves. Those of
before keep theirs until the service tells something else of them: to rewrite all would take longer than it saves.
"""

from typing import Any

from django.db import migrations, models


def find_beginnings(apps: Any, schema_editor: Any) -> None:
    """Make the index anew: PostgreSQL keeps a constraint only by an index of the usual class."""
    if schema_editor.connection.vendor == "postgresql":
        for statement in (
            "CREATE UNIQUE INDEX one_record_per_beginning ON registry_record (kind, uuid varchar_pattern_ops)",
            "ALTER TABLE registry_record DROP CONSTRAINT one_record_per_uuid",
            "ALTER INDEX one_record_per_beginning RENAME TO one_record_per_uuid",
        ):
            schema_editor.execute(statement)


class Migration(migrations.Migration):
    dependencies = [
        ("registry", "0014_together"),
    ]

    operations = [
        # SQLite would write the whole table anew, twice, for nothing.
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(find_beginnings, migrations.RunPython.noop)],
            state_operations=[
                migrations.RemoveConstraint(model_name="record", name="one_record_per_uuid"),
                migrations.AddConstraint(
                    model_name="record",
                    constraint=models.UniqueConstraint(
                        fields=("kind", "uuid"),
                        name="one_record_per_uuid",
                        opclasses=["varchar_ops", "varchar_pattern_ops"],
                    ),
                ),
            ],
        ),
    ]
