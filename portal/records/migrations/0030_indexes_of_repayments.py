"""Removes what records had for repayments alone, and adds the indexes of repayments, some with the same names."""

from typing import Any

from django.db import migrations, models

REMOVED = (
    *(
        f"repayments_by_{name}"
        for name in ("updated_at", "created_at", "amount", "subtype", "status", "category", "key_date")
    ),
    *("repayments_in_status", "repayments_flagged", "repayments_by_bank_account"),
)
ADDED = {
    "effective_on": ["effective_on", "id"],
    "status_and_day": ["status", "effective_on", "id"],
    "failure_and_day": ["has_failed", "effective_on", "id"],
    "product_and_day": ["product", "effective_on", "id"],
    "type_and_day": ["payment_type", "effective_on", "id"],
    "status": ["status", "id"],
    "amount": ["amount", "id"],
    "updated_at": ["updated_at"],
    "first_seen_at": ["first_seen_at"],
    "returned_at": ["returned_at"],
    "borrower": ["borrower_uuid"],
    "bank_account": ["bank_account"],
    "ach_id": ["ach_id"],
    "ach_batch_id": ["ach_batch_id"],
    "code": ["code"],
}
# What may be empty comes last either way round. PostgreSQL reads an index backwards with the empty first, so the
# falling orders have indexes of their own; SQLite has the empty last anyway.
FALLING = {
    "effective_on": "effective_on",
    "status_and_day": "status, effective_on",
    "failure_and_day": "has_failed, effective_on",
    "product_and_day": "product, effective_on",
    "type_and_day": "payment_type, effective_on",
    "amount": "amount",
}


def change_falling_indexes(apps: Any, schema_editor: Any) -> None:
    """Replace the falling orders, which Django has no words for."""
    if schema_editor.connection.vendor != "postgresql":
        return
    for name in ("amount", "key_date"):
        schema_editor.execute(f"DROP INDEX IF EXISTS repayments_by_{name}_falling")
    for name, columns in FALLING.items():
        schema_editor.execute(
            f"CREATE INDEX repayments_by_{name}_falling ON registry_repayment"
            f" ({columns} DESC NULLS LAST, id DESC)"
        )


class Migration(migrations.Migration):
    dependencies = [("registry", "0029_move_repayments")]

    operations = [
        *(migrations.RemoveIndex(model_name="record", name=name) for name in REMOVED),
        *(
            migrations.AddIndex("repayment", models.Index(fields=fields, name=f"repayments_by_{name}"))
            for name, fields in ADDED.items()
        ),
        migrations.RunPython(change_falling_indexes, migrations.RunPython.noop),
    ]
