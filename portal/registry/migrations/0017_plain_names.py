"""Columns that hold something else for each kind of record get names that fit all of them, and so do their indexes."""

from collections.abc import Mapping
from typing import Any

from django.db import migrations, models

LISTED = models.Q(("archived_at__isnull", True))
REPAYMENTS = models.Q(("kind", "repayment")) & LISTED
APPLICATIONS = models.Q(("kind", "application")) & LISTED
USUAL = ["-updated_at", "-id"]
INDEXES = {
    "records_by_checked_at": (["checked_at", "id", "category"], LISTED),
    "records_by_state": (["state", *USUAL, "subtype", "status", "flagged"], LISTED),
    "records_by_status": (["status", *USUAL, "subtype", "state", "flagged"], LISTED),
    "records_by_flagged": (["flagged", *USUAL, "subtype", "state", "status"], LISTED),
    "records_by_subtype": (["subtype", *USUAL, "state", "status", "flagged"], LISTED),
    "records_by_key_date": (["key_date", "id"], LISTED),
    "applications_by_category": (["category", "id"], APPLICATIONS),
    "repayments_by_category": (["category", "id"], REPAYMENTS),
    "repayments_by_key_date": (
        ["key_date", "id", "status", "category", "subtype", "flagged", "amount", "archived_at"],
        REPAYMENTS,
    ),
}
RENAMED = {
    "records_by_entity": "records_by_subtype",
    "records_by_due_date": "records_by_key_date",
    "records_by_due_date_falling": "records_by_key_date_falling",
    "applications_by_product": "applications_by_category",
    "repayments_by_product": "repayments_by_category",
    "repayments_by_due_date": "repayments_by_key_date",
    "repayments_by_due_date_falling": "repayments_by_key_date_falling",
}
BEFORE = {after: before for before, after in RENAMED.items() if after in INDEXES}


def restore_indexes(apps: Any, schema_editor: Any) -> None:
    rename_indexes(apps, schema_editor, {after: before for before, after in RENAMED.items()})


def rename_indexes(apps: Any, schema_editor: Any, names: Mapping[str, str] = RENAMED) -> None:
    """Rename them where the database can; SQLite makes them again."""
    for before, after in names.items():
        if schema_editor.connection.vendor == "postgresql":
            schema_editor.execute(f"ALTER INDEX IF EXISTS {before} RENAME TO {after}")
            continue
        with schema_editor.connection.cursor() as cursor:
            cursor.execute("SELECT sql FROM sqlite_master WHERE type = 'index' AND name = %s", [before])
            for (statement,) in cursor.fetchall():
                cursor.execute(f"DROP INDEX {before}")
                cursor.execute(statement.replace(before, after, 1))


class Migration(migrations.Migration):
    dependencies = [("registry", "0016_owner_confirmed")]

    operations = [
        migrations.RenameField(model_name="record", old_name="product", new_name="category"),
        migrations.RenameField(model_name="record", old_name="entity", new_name="subtype"),
        migrations.RenameField(model_name="record", old_name="due_date", new_name="key_date"),
        migrations.AlterField(
            model_name="record",
            name="category",
            field=models.CharField(
                blank=True,
                help_text="Product of an account, type of a borrower, title of a key person.",
                max_length=40,
            ),
        ),
        migrations.AlterField(
            model_name="record",
            name="subtype",
            field=models.CharField(
                blank=True, help_text="Legal form of a borrower, payment type of a repayment.", max_length=40
            ),
        ),
        migrations.AlterField(
            model_name="record",
            name="key_date",
            field=models.DateField(
                help_text=(
                    "First unpaid due date of a loan, payment due date of a line, effective date of a repayment."
                ),
                null=True,
            ),
        ),
        # The database's indexes follow the columns; only what Django knows of them is made again.
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(rename_indexes, restore_indexes)],
            state_operations=[
                operation
                for name, (fields, condition) in INDEXES.items()
                for operation in (
                    migrations.RemoveIndex(model_name="record", name=BEFORE.get(name, name)),
                    migrations.AddIndex(
                        model_name="record",
                        index=models.Index(fields=["kind", *fields], condition=condition, name=name),
                    ),
                )
            ],
        ),
    ]
