"""Indexes that answer the list of repayments alone: every filter, and the values that its selects offer."""

from typing import Any

from django.db import migrations, models

LISTED = models.Q(("kind", "repayment"), ("archived_at__isnull", True))


def fall(apps: Any, schema_editor: Any) -> None:
    """PostgreSQL reads an index backwards with the empty first: the falling order with the empty last is its own."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(
            "CREATE INDEX repayments_by_due_date_falling ON registry_record"
            " (kind, due_date DESC NULLS LAST, id DESC) INCLUDE (status, product, entity, flagged, amount)"
            " WHERE kind = 'repayment' AND archived_at IS NULL"
        )


class Migration(migrations.Migration):
    dependencies = [
        ("registry", "0007_orders"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="record",
            index=models.Index(
                condition=LISTED,
                fields=["kind", "product", "id"],
                name="repayments_by_product",
            ),
        ),
        migrations.AddIndex(
            model_name="record",
            index=models.Index(
                condition=LISTED,
                fields=["kind", "due_date", "id", "status", "product", "entity", "flagged", "amount"],
                name="repayments_by_due_date",
            ),
        ),
        migrations.RunPython(fall, migrations.RunPython.noop),
    ]
