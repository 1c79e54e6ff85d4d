"""The indexes of messages, made after their columns were filled."""

from typing import Any

from django.db import migrations, models

INDEXES = [
    models.Index(fields=["recorded_at", "id"], name="messages_by_time"),
    models.Index(fields=["event", "recorded_at", "id"], name="messages_by_event"),
    models.Index(fields=["status", "recorded_at", "id"], name="messages_by_status"),
    models.Index(fields=["product", "recorded_at", "id"], name="messages_by_product"),
    models.Index(fields=["payment_status", "recorded_at", "id"], name="messages_by_payment_status"),
    models.Index(fields=["amount"], name="messages_by_amount"),
    models.Index(fields=["subject_uuid"], name="messages_by_subject_uuid"),
    models.Index(fields=["bank_account"], name="messages_by_bank_account"),
    models.Index(fields=["day", "is_placed", "gone_at"], name="messages_by_day"),
    models.Index(
        fields=["recorded_at"], name="messages_gone", condition=models.Q(("gone_at__isnull", False))
    ),
    models.Index(
        fields=["recorded_at"],
        name="messages_changed",
        condition=models.Q(("changed_payload__isnull", False)),
    ),
]


def index_texts(apps: Any, schema_editor: Any) -> None:
    """Index the trigrams of texts; SQLite reads those of a month instead."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm")
        schema_editor.execute(
            "CREATE INDEX IF NOT EXISTS messages_by_text ON messaging_message USING gin (search_text gin_trgm_ops)"
        )


class Migration(migrations.Migration):
    dependencies = [("messaging", "0007_fill_rows")]

    operations = [
        *(migrations.AddIndex(model_name="message", index=index) for index in INDEXES),
        migrations.RunPython(index_texts, migrations.RunPython.noop),
    ]
