"""On SQLite, keeps the digests of values out of the table of trigrams: they take a tenth of the room in one of their own."""

from django.db import migrations

from portal.messaging.search_index import rebuild


class Migration(migrations.Migration):
    dependencies = [("messaging", "0001_messages")]

    operations = [migrations.RunPython(rebuild, migrations.RunPython.noop)]
