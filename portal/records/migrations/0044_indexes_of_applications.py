"""The index of the texts of applications, and no more columns and indexes of their records."""

from importlib import import_module
from typing import Any

from django.db import migrations, models
from django.db.models import Q

from portal.records.migration_steps import AddTextIndex

search = import_module("portal.records.migrations.0033_indexes_of_search")
TEXTS = models.Index(
    fields=["-id", "search_text", "archived_at"],
    condition=~Q(search_text="") & Q(archived_at__isnull=True),
    name="application_by_text",
)
REMOVED = (
    *("by_text", "in_status", "by_updated_at", "by_created_at", "by_submitted_at", "by_amount"),
    *("by_checked_at", "by_status", "by_category"),
)
FALLING = {
    "amount": "amount DESC NULLS LAST, id DESC",
    "submitted_at": "submitted_at DESC NULLS LAST, id DESC",
    "decision_time": "decision, submitted_at DESC NULLS LAST, id DESC",
}


def change_falling_indexes(apps: Any, schema_editor: Any) -> None:
    """Replace PostgreSQL's falling orders with the empty last, which Django has no words for."""
    if schema_editor.connection.vendor == "postgresql":
        for name, columns in FALLING.items():
            for table in ("applications", "application"):
                schema_editor.execute(f"DROP INDEX IF EXISTS {table}_by_{name}_falling")
            schema_editor.execute(
                f"CREATE INDEX application_by_{name}_falling ON registry_application"
                f" ({columns}) WHERE archived_at IS NULL"
            )


class Migration(migrations.Migration):
    dependencies = [("registry", "0043_move_applications")]

    operations = [
        AddTextIndex("application", TEXTS),
        *(migrations.RemoveIndex("record", f"applications_{name}") for name in REMOVED),
        migrations.RemoveField("record", "submitted_at"),
        migrations.RunPython(change_falling_indexes, migrations.RunPython.noop),
        migrations.RunPython(search.update_statistics, migrations.RunPython.noop, elidable=True),
    ]
