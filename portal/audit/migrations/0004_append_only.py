"""Makes the database refuse whatever is not an appended entry."""

from django.db import migrations

from portal.audit.guard import create, drop


class Migration(migrations.Migration):
    dependencies = [
        ("audit", "0003_shown"),
    ]

    operations = [
        migrations.RunPython(create, drop),
    ]
