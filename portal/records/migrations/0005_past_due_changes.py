"""The days on which accounts fell past due or were cured, and an index of what is past due over both kinds."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("registry", "0004_indexes_of_lists")]

    operations = [
        migrations.AddField(
            "record", "answer_day", models.DateField(help_text="The business date of the answer.", null=True)
        ),
        migrations.CreateModel(
            name="PastDueChange",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("day", models.DateField(help_text="The business date.")),
                ("is_cured", models.BooleanField()),
                (
                    "record",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="past_due_changes",
                        to="registry.record",
                    ),
                ),
            ],
            options={
                "ordering": ["-day", "-id"],
                "indexes": [
                    models.Index(fields=["day", "is_cured", "record"], name="past_due_changes_by_day")
                ],
            },
        ),
    ]
