"""Accounts get their figures, and lists indexes for what is past due; a job calculates those of earlier answers."""

from typing import Any

from django.db import migrations, models

FALLING = {
    "borrowers_by_past_due_rank": ("past_due_rank", "borrower"),
    "loans_by_past_due_rank": ("past_due_rank", "loan"),
    "loans_by_past_due": ("past_due", "loan"),
    "lines_by_past_due_rank": ("past_due_rank", "line"),
}


def add_falling_indexes(apps: Any, schema_editor: Any) -> None:
    """PostgreSQL reads an index backwards with the empty first; SQLite has the empty last in a falling order anyway."""
    if schema_editor.connection.vendor != "postgresql":
        return
    for name, (column, kind) in FALLING.items():
        schema_editor.execute(
            f"CREATE INDEX {name}_falling ON registry_record (kind, {column} DESC NULLS LAST, id DESC)"
            f" WHERE kind = '{kind}' AND archived_at IS NULL"
        )


def drop_falling_indexes(apps: Any, schema_editor: Any) -> None:
    if schema_editor.connection.vendor == "postgresql":
        for name in FALLING:
            schema_editor.execute(f"DROP INDEX IF EXISTS {name}_falling")


class Migration(migrations.Migration):
    dependencies = [
        ("registry", "0018_kind_choices"),
    ]

    operations = [
        migrations.AddField(
            model_name="record",
            name="available",
            field=models.DecimalField(decimal_places=4, max_digits=20, null=True),
        ),
        migrations.AddField(
            model_name="record",
            name="days_past_due",
            field=models.IntegerField(help_text="Of a line, as reported in its answer.", null=True),
        ),
        migrations.AddField(
            model_name="record",
            name="due_amount",
            field=models.DecimalField(decimal_places=4, max_digits=20, null=True),
        ),
        migrations.AddField(
            model_name="record",
            name="figures_good_through",
            field=models.DateField(
                help_text="The last business date on which they hold; null if they were never calculated.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="record",
            name="oldest_unpaid_due",
            field=models.DateField(help_text="Days past due of a loan are counted from it.", null=True),
        ),
        migrations.AddField(
            model_name="record",
            name="past_due_rank",
            field=models.DecimalField(
                decimal_places=4,
                help_text="Orders what is past due, not known above all.",
                max_digits=20,
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="record",
            name="principal",
            field=models.DecimalField(decimal_places=4, max_digits=20, null=True),
        ),
        migrations.AddField(
            model_name="record",
            name="remaining",
            field=models.DecimalField(decimal_places=4, max_digits=20, null=True),
        ),
        migrations.AlterField(
            model_name="record",
            name="flagged",
            field=models.BooleanField(
                default=False, help_text="An account that is past due, a failed repayment."
            ),
        ),
        migrations.AlterField(
            model_name="record",
            name="key_date",
            field=models.DateField(
                help_text="Next due date of a loan or line, effective date of a repayment.", null=True
            ),
        ),
        migrations.AlterField(
            model_name="record",
            name="past_due",
            field=models.DecimalField(
                decimal_places=4, help_text="Null: not known.", max_digits=20, null=True
            ),
        ),
        migrations.AddIndex(
            model_name="record",
            index=models.Index(
                condition=models.Q(("kind", "borrower"), ("archived_at__isnull", True)),
                fields=["kind", "past_due_rank", "id"],
                name="borrowers_by_past_due_rank",
            ),
        ),
        migrations.AddIndex(
            model_name="record",
            index=models.Index(
                condition=models.Q(("kind", "loan"), ("archived_at__isnull", True)),
                fields=["kind", "past_due", "id"],
                name="loans_by_past_due",
            ),
        ),
        migrations.AddIndex(
            model_name="record",
            index=models.Index(
                condition=models.Q(("kind", "loan"), ("archived_at__isnull", True)),
                fields=["kind", "past_due_rank", "id"],
                name="loans_by_past_due_rank",
            ),
        ),
        migrations.AddIndex(
            model_name="record",
            index=models.Index(
                condition=models.Q(("kind", "loan"), ("archived_at__isnull", True)),
                fields=["kind", "figures_good_through", "id"],
                name="loans_by_figures_good_through",
            ),
        ),
        migrations.AddIndex(
            model_name="record",
            index=models.Index(
                condition=models.Q(("kind", "line"), ("archived_at__isnull", True)),
                fields=["kind", "past_due_rank", "id"],
                name="lines_by_past_due_rank",
            ),
        ),
        migrations.AddIndex(
            model_name="record",
            index=models.Index(
                condition=models.Q(("kind", "line"), ("archived_at__isnull", True)),
                fields=["kind", "figures_good_through", "id"],
                name="lines_by_figures_good_through",
            ),
        ),
        migrations.RunPython(add_falling_indexes, drop_falling_indexes),
    ]
