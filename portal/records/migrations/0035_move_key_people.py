"""Moves key people to their own table with their keys, in batches: each is whole, and the next run begins after it."""

from typing import Any

from django.core.management.color import no_style
from django.db import migrations, transaction

BATCH_SIZE = 500
# The columns that are named otherwise than those of a record.
RENAMED = {"answer_id": "said_id", "name": "label", "title": "category"}
SAME = (
    *("id", "uuid", "answer_at", "answer_day", "checked_at", "created_at", "updated_at", "created_by"),
    *("archived_at", "borrower_uuid", "state", "city", "phone", "email", "search_text"),
)
# In SQL, because the model would set its own times.
COPY = (
    f"INSERT INTO registry_keyperson ({', '.join([*SAME, *RENAMED])}, folded_name)"  # noqa: S608 - names of columns
    f" SELECT {', '.join([*SAME, *RENAMED.values()])}, COALESCE(name_key, '') FROM registry_record"
    " WHERE kind = 'key_person' AND id BETWEEN %s AND %s"
)


def move_people(apps: Any, schema_editor: Any) -> None:
    connection = schema_editor.connection
    people = apps.get_model("registry", "Record").objects.using(connection.alias).filter(kind="key_person")
    while keys := list(people.order_by("pk").values_list("pk", flat=True)[:BATCH_SIZE]):
        with transaction.atomic(connection.alias), connection.cursor() as cursor:
            cursor.execute(COPY, [keys[0], keys[-1]])
            people.filter(pk__lte=keys[-1]).delete()


def continue_keys(apps: Any, schema_editor: Any) -> None:
    """On PostgreSQL, give new key people the keys after those."""
    connection = schema_editor.connection
    with connection.cursor() as cursor:
        models = [apps.get_model("registry", "KeyPerson")]
        for statement in connection.ops.sequence_reset_sql(no_style(), models):
            cursor.execute(statement)


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("registry", "0034_key_people")]

    operations = [
        migrations.RunPython(move_people, migrations.RunPython.noop, elidable=True),
        migrations.RunPython(continue_keys, migrations.RunPython.noop, elidable=True),
    ]
