"""A record is looked for by its kind and its identifier, which the index of their constraint answers.

No version was released that looks for an identifier alone; else this would have to wait for the one after.
"""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("registry", "0012_created_last"),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name="record",
            name="registry_re_uuid_3c5627_idx",
        ),
    ]
