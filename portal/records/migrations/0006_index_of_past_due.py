"""An index of what is past due over loans and lines: it orders the worklist, and alone adds it up by aging."""

from typing import Any

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.models import Q


class AddIndexOnline(AddIndexConcurrently):
    """Adds an index while others write, where the database can."""

    def database_forwards(self, app_label: str, editor: Any, before: Any, after: Any) -> None:
        if editor.connection.vendor == "postgresql":
            super().database_forwards(app_label, editor, before, after)
        else:
            migrations.AddIndex.database_forwards(self, app_label, editor, before, after)


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("registry", "0005_past_due_changes")]

    operations = [
        AddIndexOnline(
            "record",
            models.Index(
                fields=[
                    "past_due_rank",
                    "id",
                    "kind",
                    "past_due",
                    "oldest_unpaid_due",
                    "days_past_due",
                    "archived_at",
                ],
                condition=~Q(kind="borrower") & Q(past_due_rank__isnull=False) & Q(archived_at__isnull=True),
                name="accounts_past_due",
            ),
        )
    ]
