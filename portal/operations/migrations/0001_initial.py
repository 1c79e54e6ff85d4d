"""Counts of requests and calls, and the table that is the cache where several processes share a database."""

from typing import Any

from django.core.management import call_command
from django.db import migrations, models


def create_cache(apps: Any, schema_editor: Any) -> None:
    call_command("createcachetable", "operations_cache", database=schema_editor.connection.alias, verbosity=0)


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Tally",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(help_text="A request, or a call of the lending service.", max_length=20),
                ),
                ("name", models.CharField(help_text="The view, or the operation.", max_length=100)),
                ("outcome", models.CharField(max_length=20)),
                (
                    "span",
                    models.PositiveIntegerField(
                        help_text="Took this many milliseconds at most; the longest has no end."
                    ),
                ),
                ("count", models.PositiveBigIntegerField(default=0)),
                ("milliseconds", models.PositiveBigIntegerField(default=0)),
            ],
            options={
                "verbose_name_plural": "tallies",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("kind", "name", "outcome", "span"), name="one_tally_of_each"
                    )
                ],
            },
        ),
        migrations.RunPython(create_cache, migrations.RunPython.noop),
    ]
