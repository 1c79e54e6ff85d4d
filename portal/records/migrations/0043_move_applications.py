"""Moves applications to their own table with their keys, in batches: each is whole, and the next run begins after it."""

from typing import Any

from django.core.management.color import no_style
from django.db import migrations, transaction

BATCH_SIZE = 500
# The columns that are named otherwise than those of a record.
RENAMED = {"answer_id": "said_id", "product": "category", "decision": "status"}
SAME = (
    *("id", "uuid", "answer_at", "answer_day", "checked_at", "created_at", "updated_at", "created_by"),
    *("archived_at", "borrower_uuid", "owner_confirmed", "label", "amount", "submitted_at", "search_text"),
)
# In SQL, because the model would set its own times.
COPY = (
    f"INSERT INTO registry_application ({', '.join([*SAME, *RENAMED])})"  # noqa: S608 - names of columns
    f" SELECT {', '.join([*SAME, *RENAMED.values()])} FROM registry_record"
    " WHERE kind = 'application' AND id BETWEEN %s AND %s"
)


def move_applications(apps: Any, schema_editor: Any) -> None:
    connection = schema_editor.connection
    found = apps.get_model("registry", "Record").objects.using(connection.alias).filter(kind="application")
    while keys := list(found.order_by("pk").values_list("pk", flat=True)[:BATCH_SIZE]):
        with transaction.atomic(connection.alias), connection.cursor() as cursor:
            cursor.execute(COPY, [keys[0], keys[-1]])
            found.filter(pk__lte=keys[-1]).delete()


def continue_keys(apps: Any, schema_editor: Any) -> None:
    """On PostgreSQL, give new applications the keys after those."""
    connection = schema_editor.connection
    with connection.cursor() as cursor:
        models = [apps.get_model("registry", "Application")]
        for statement in connection.ops.sequence_reset_sql(no_style(), models):
            cursor.execute(statement)


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("registry", "0042_applications")]

    operations = [
        migrations.RunPython(move_applications, migrations.RunPython.noop, elidable=True),
        migrations.RunPython(continue_keys, migrations.RunPython.noop, elidable=True),
    ]
