"""The index of kinds and identifiers finds on PostgreSQL how an identifier begins, too; SQLite's does already.

So the texts of records need not hold their identifiers, which had most of the indexes of texts to themselves. What was
written before may keep them: to write all of it anew would take longer than it saves.
"""

from typing import Any

from django.db import migrations, models

from portal.registry.search.index import renew_triggers


def find_beginnings(apps: Any, schema_editor: Any) -> None:
    """Make the index anew: PostgreSQL keeps a constraint only by an index of the usual class."""
    if schema_editor.connection.vendor == "postgresql":
        for statement in (
            "CREATE UNIQUE INDEX one_record_per_beginning ON registry_record (kind, uuid varchar_pattern_ops)",
            "ALTER TABLE registry_record DROP CONSTRAINT one_record_per_uuid",
            "ALTER INDEX one_record_per_beginning RENAME TO one_record_per_uuid",
        ):
            schema_editor.execute(statement)


def forget_beginnings(apps: Any, schema_editor: Any) -> None:
    """The usual constraint again."""
    if schema_editor.connection.vendor == "postgresql":
        for statement in (
            "DROP INDEX one_record_per_uuid",
            "ALTER TABLE registry_record ADD CONSTRAINT one_record_per_uuid UNIQUE (kind, uuid)",
        ):
            schema_editor.execute(statement)


class Migration(migrations.Migration):
    dependencies = [
        ("registry", "0014_together"),
    ]

    operations = [
        migrations.RunPython(renew_triggers, migrations.RunPython.noop),
        # SQLite would write the whole table anew, twice, for nothing.
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(find_beginnings, forget_beginnings)],
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
