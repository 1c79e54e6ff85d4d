"""Folds the texts of saved contacts, in which search looks. An interrupted upgrade may begin again."""

from typing import Any

from django.db import migrations, models

from portal.core.folding import fold

BATCH_SIZE = 500


def fold_texts(apps: Any, schema_editor: Any) -> None:
    rows, last = apps.get_model("collections", "Contact").objects.using(schema_editor.connection.alias), 0
    while batch := list(rows.filter(pk__gt=last).order_by("pk")[:BATCH_SIZE]):
        last = batch[-1].pk
        for row in batch:
            row.folded_text = fold(f"{row.note} {row.next_action}")
        rows.bulk_update(batch, ["folded_text"], batch_size=100)


class Migration(migrations.Migration):
    dependencies = [("collections", "0002_promise_broken_on")]

    operations = [
        migrations.AddField(
            model_name="contact",
            name="folded_text",
            field=models.TextField(db_default="", editable=False, help_text="The note and the next action."),
        ),
        migrations.RunPython(fold_texts, migrations.RunPython.noop, elidable=True),
    ]
