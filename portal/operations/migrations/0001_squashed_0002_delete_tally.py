"""The table that is the cache where several processes share a database."""

from typing import Any

from django.core.management import call_command
from django.db import migrations


def create_cache(apps: Any, schema_editor: Any) -> None:
    call_command("createcachetable", "operations_cache", database=schema_editor.connection.alias, verbosity=0)


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ("operations", "0001_initial"),
        ("operations", "0002_delete_tally"),
    ]

    dependencies = []

    operations = [migrations.RunPython(create_cache, migrations.RunPython.noop)]
