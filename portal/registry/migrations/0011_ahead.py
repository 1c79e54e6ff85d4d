"""What is still to be repaid is counted by an index alone: on SQLite that needs the column of its condition, too."""

from django.db import migrations, models

from portal.registry.planning import leave_the_kind_out


class Migration(migrations.Migration):
    dependencies = [
        ("registry", "0010_texts"),
    ]

    operations = [
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
        migrations.RunPython(leave_the_kind_out, migrations.RunPython.noop),
    ]
