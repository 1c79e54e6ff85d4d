"""On PostgreSQL each kind has a table of its texts, with statistics of its own: it plans by how frequent a word is there.

Not moved by a job: a table that holds some of the texts would hide the others from the search.
"""

from typing import Any

from django.db import migrations
from django.db.models.functions import Length

from portal.registry.query import MAX_LENGTH
from portal.registry.search.index import create_tables
from portal.registry.search.texts import lines_of, search_text


def shorten(apps: Any, schema_editor: Any) -> None:
    """A line of an absurd name may be longer than an index of lines can hold."""
    records = apps.get_model("registry", "Record").objects.alias(length=Length("search_text"))
    for row in records.filter(length__gt=MAX_LENGTH).only("search_text").iterator():
        before, row.search_text = row.search_text, search_text(*lines_of(row))
        if row.search_text != before:
            row.save(update_fields=["search_text"])


class Migration(migrations.Migration):
    dependencies = [
        ("registry", "0009_names"),
    ]

    operations = [
        migrations.RunPython(shorten, migrations.RunPython.noop),
        migrations.RunPython(create_tables, migrations.RunPython.noop),
    ]
