"""The table that is the cache where several processes share a database and no other cache is named."""

from typing import Any

from django.core.management import call_command
from django.db import migrations


def create(apps: Any, schema_editor: Any) -> None:
    call_command("createcachetable", "operations_cache", database=schema_editor.connection.alias, verbosity=0)


class Migration(migrations.Migration):
    dependencies = [("operations", "0001_tallies")]
    operations = [migrations.RunPython(create, migrations.RunPython.noop)]
