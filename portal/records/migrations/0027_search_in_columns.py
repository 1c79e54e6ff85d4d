"""Drops the search tables of version 1.0, and adds one of the words of names."""

from typing import Any

from django.db import migrations, models

KINDS = ("borrower", "key_person", "application", "loan", "line", "repayment")
TRIGGERS = ("insert", "delete", "update", "truncate")


def drop_search_tables(apps: Any, schema_editor: Any) -> None:
    is_postgres = schema_editor.connection.vendor == "postgresql"
    on_table = " ON registry_record" if is_postgres else ""
    for table in (f"registry_search_{kind}" for kind in KINDS):
        for name in TRIGGERS:
            schema_editor.execute(f"DROP TRIGGER IF EXISTS {table}_{name}{on_table}")
        if is_postgres:
            schema_editor.execute(f"DROP FUNCTION IF EXISTS {table}()")
        schema_editor.execute(f"DROP TABLE IF EXISTS {table}")


class Migration(migrations.Migration):
    dependencies = [("registry", "0026_remove_indexes_of_lists")]

    operations = [
        migrations.RunPython(drop_search_tables, migrations.RunPython.noop),
        migrations.CreateModel(
            name="NameWord",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("word", models.CharField(max_length=60)),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("word",), name="one_row_per_word")],
            },
        ),
        migrations.AlterField(
            model_name="record",
            name="name_key",
            field=models.CharField(
                help_text="The letters and digits of a borrower's or person's name, folded.",
                max_length=300,
                null=True,
            ),
        ),
    ]
