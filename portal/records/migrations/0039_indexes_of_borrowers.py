"""The index of the texts of borrowers, and no more columns and indexes of their records."""

from importlib import import_module
from typing import Any

from django.db import migrations, models
from django.db.models import Q

from portal.records.migration_steps import AddTextIndex

search = import_module("portal.records.migrations.0033_indexes_of_search")
TEXTS = models.Index(
    fields=["-id", "search_text", "archived_at"],
    condition=~Q(search_text="") & Q(archived_at__isnull=True),
    name="borrower_by_text",
)


def change_falling_index(apps: Any, schema_editor: Any) -> None:
    """Replace PostgreSQL's falling order of the worst, with the empty last, which Django has no words for."""
    if schema_editor.connection.vendor == "postgresql":
        for name in ("borrowers_by_past_due_rank_falling", "borrower_by_past_due_rank_falling"):
            schema_editor.execute(f"DROP INDEX IF EXISTS {name}")
        schema_editor.execute(
            "CREATE INDEX borrower_by_past_due_rank_falling ON registry_borrower"
            " (past_due_rank DESC NULLS LAST, id DESC) WHERE archived_at IS NULL"
        )


class Migration(migrations.Migration):
    dependencies = [("registry", "0038_move_borrowers")]

    operations = [
        AddTextIndex("borrower", TEXTS),
        migrations.RemoveIndex(
            model_name="record",
            name="borrowers_by_label",
        ),
        migrations.RemoveIndex(
            model_name="record",
            name="borrowers_by_city",
        ),
        migrations.RemoveIndex(
            model_name="record",
            name="borrowers_by_past_due",
        ),
        migrations.RemoveIndex(
            model_name="record",
            name="borrowers_by_past_due_rank",
        ),
        migrations.RemoveIndex(
            model_name="record",
            name="borrowers_by_checked_at",
        ),
        migrations.RemoveIndex(
            model_name="record",
            name="borrowers_by_created_by",
        ),
        migrations.RemoveIndex(
            model_name="record",
            name="accounts_past_due",
        ),
        migrations.RemoveIndex(
            model_name="record",
            name="borrowers_by_updated_at",
        ),
        migrations.RemoveIndex(
            model_name="record",
            name="borrowers_by_created_at",
        ),
        migrations.RemoveIndex(
            model_name="record",
            name="borrowers_by_subtype",
        ),
        migrations.RemoveIndex(
            model_name="record",
            name="borrowers_by_state",
        ),
        migrations.RemoveIndex(
            model_name="record",
            name="borrowers_by_status",
        ),
        migrations.RemoveIndex(
            model_name="record",
            name="borrowers_flagged",
        ),
        migrations.RemoveIndex(
            model_name="record",
            name="borrowers_by_text",
        ),
        migrations.RemoveIndex(
            model_name="record",
            name="people_by_name",
        ),
        migrations.RemoveField(
            model_name="record",
            name="city",
        ),
        migrations.RemoveField(
            model_name="record",
            name="email",
        ),
        migrations.RemoveField(
            model_name="record",
            name="name_key",
        ),
        migrations.RemoveField(
            model_name="record",
            name="phone",
        ),
        migrations.AlterField(
            model_name="record",
            name="category",
            field=models.CharField(blank=True, help_text="Product.", max_length=40),
        ),
        migrations.RemoveField(
            model_name="record",
            name="subtype",
        ),
        migrations.AddIndex(
            model_name="record",
            index=models.Index(
                condition=models.Q(("past_due_rank__isnull", False), ("archived_at__isnull", True)),
                fields=[
                    "past_due_rank",
                    "id",
                    "kind",
                    "past_due",
                    "oldest_unpaid_due",
                    "days_past_due",
                    "archived_at",
                ],
                name="accounts_past_due",
            ),
        ),
        migrations.RunPython(change_falling_index, migrations.RunPython.noop),
        migrations.RunPython(search.update_statistics, migrations.RunPython.noop, elidable=True),
    ]
