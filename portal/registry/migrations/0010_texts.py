"""On PostgreSQL each kind has a table of its texts, with statistics of its own: it plans by how frequent a word is there.

Indexes of one kind alone begin without it: what stands in the condition of an index, PostgreSQL does not look for in its
columns, and reads all of it.
"""

from django.db import migrations

from portal.registry.planning import leave_the_kind_out
from portal.registry.search_index import create_tables


class Migration(migrations.Migration):
    dependencies = [
        ("registry", "0009_names"),
    ]

    operations = [
        migrations.RunPython(create_tables, migrations.RunPython.noop),
        migrations.RunPython(leave_the_kind_out, migrations.RunPython.noop),
    ]
