"""On PostgreSQL the texts of all rows of a statement are taken in together: many are imported at once."""

from django.db import migrations

from portal.registry.search.index import renew_triggers


class Migration(migrations.Migration):
    dependencies = [
        ("registry", "0013_kind_and_uuid"),
    ]

    operations = [
        migrations.RunPython(renew_triggers, migrations.RunPython.noop),
    ]
