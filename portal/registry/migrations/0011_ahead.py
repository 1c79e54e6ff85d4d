"""What is still to be repaid is counted by an index alone: on SQLite that needs the column of its condition, too.

On PostgreSQL indexes of one kind alone begin without it: what stands in the condition of an index, it does not look for
in its columns, and reads all of it.
"""

from django.db import migrations, models

from portal.registry.search.index import drop_indexes
from portal.registry.table_statistics import analyze_after_migration, drop_constant_kind_column


class Migration(migrations.Migration):
    dependencies = [
        ("registry", "0010_texts"),
    ]

    operations = [
        migrations.RunPython(drop_indexes, migrations.RunPython.noop),
        migrations.RemoveIndex(
            model_name="record",
            name="repayments_by_due_date",
        ),
        migrations.AddIndex(
            model_name="record",
            index=models.Index(
                condition=models.Q(("kind", "repayment"), ("archived_at__isnull", True)),
                fields=[
                    "kind",
                    "due_date",
                    "id",
                    "status",
                    "product",
                    "entity",
                    "flagged",
                    "amount",
                    "archived_at",
                ],
                name="repayments_by_due_date",
            ),
        ),
        migrations.RunPython(drop_constant_kind_column, migrations.RunPython.noop),
        migrations.RunPython(analyze_after_migration, migrations.RunPython.noop),
    ]
