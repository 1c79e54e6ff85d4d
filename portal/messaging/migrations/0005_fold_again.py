"""The search texts of saved messages are folded again."""

from typing import Any

from django.db import migrations

from portal.messaging import search_index
from servicing import codec

BATCH_SIZE = 1_000


def fold_again(apps: Any, schema_editor: Any) -> None:
    messages = apps.get_model("messaging", "Message").objects.using(schema_editor.connection.alias)
    if not messages.exists():
        return
    is_sqlite = schema_editor.connection.vendor == "sqlite"
    if is_sqlite:  # Its index follows new and deleted messages, but no changes.
        search_index.drop(apps, schema_editor)
    batch = []
    for message in messages.only("body", "search_text").order_by("pk").iterator(BATCH_SIZE):
        message.search_text = search_index.search_text(codec.parse(message.body))
        batch.append(message)
        if len(batch) >= BATCH_SIZE:
            messages.bulk_update(batch, ["search_text"])
            batch = []
    messages.bulk_update(batch, ["search_text"])
    if is_sqlite:
        search_index.create(apps, schema_editor)


class Migration(migrations.Migration):
    dependencies = [("messaging", "0004_readings")]

    operations = [migrations.RunPython(fold_again, migrations.RunPython.noop, elidable=True)]
