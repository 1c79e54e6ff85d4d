"""An index for each order of each list: whatever its column, and whichever way round."""

from typing import Any

from django.db import migrations, models

# The orders whose column may be empty: what is empty stands last either way.
FALLING = {
    "records_by_amount": ("amount", ""),
    "records_by_due_date": ("due_date", ""),
    "records_by_checked_at": ("checked_at", ""),
    "loans_by_rate": ("rate", "kind = 'loan' AND "),
    "lines_by_past_due": ("past_due", "kind = 'line' AND "),
    "borrowers_by_past_due": ("past_due", "kind = 'borrower' AND "),
}


def fall(apps: Any, schema_editor: Any) -> None:
    """PostgreSQL reads an index backwards with the empty first; SQLite has the empty last in a falling order anyway."""
    if schema_editor.connection.vendor != "postgresql":
        return
    for name, (column, condition) in FALLING.items():
        schema_editor.execute(
            f"CREATE INDEX {name}_falling ON registry_record (kind, {column} DESC NULLS LAST, id DESC)"
            f" WHERE {condition}archived_at IS NULL"
        )


class Migration(migrations.Migration):
    dependencies = [
        ("registry", "0006_due"),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name="record",
            name="records_by_amount",
        ),
        migrations.RemoveIndex(
            model_name="record",
            name="borrowers_by_past_due",
        ),
        migrations.RemoveIndex(
            model_name="record",
            name="records_by_checked_at",
        ),
        migrations.AddIndex(
            model_name="record",
            index=models.Index(
                condition=models.Q(("archived_at__isnull", True)),
                fields=["kind", "checked_at", "id", "product"],
                name="records_by_checked_at",
            ),
        ),
        migrations.AddIndex(
            model_name="record",
            index=models.Index(
                condition=models.Q(("archived_at__isnull", True)),
                fields=["kind", "status", "id"],
                name="records_in_status",
            ),
        ),
        migrations.AddIndex(
            model_name="record",
            index=models.Index(
                condition=models.Q(("archived_at__isnull", True)),
                fields=["kind", "amount", "id"],
                name="records_by_amount",
            ),
        ),
        migrations.AddIndex(
            model_name="record",
            index=models.Index(
                condition=models.Q(("kind", "borrower"), ("archived_at__isnull", True)),
                fields=["kind", "past_due", "id"],
                name="borrowers_by_past_due",
            ),
        ),
        migrations.AddIndex(
            model_name="record",
            index=models.Index(
                condition=models.Q(("kind", "application"), ("archived_at__isnull", True)),
                fields=["kind", "product", "id"],
                name="applications_by_product",
            ),
        ),
        migrations.AddIndex(
            model_name="record",
            index=models.Index(
                condition=models.Q(("kind", "loan"), ("archived_at__isnull", True)),
                fields=["kind", "rate", "id"],
                name="loans_by_rate",
            ),
        ),
        migrations.AddIndex(
            model_name="record",
            index=models.Index(
                condition=models.Q(("kind", "line"), ("archived_at__isnull", True)),
                fields=["kind", "past_due", "id"],
                name="lines_by_past_due",
            ),
        ),
        migrations.RunPython(fall, migrations.RunPython.noop),
    ]
