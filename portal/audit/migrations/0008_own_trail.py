"""On PostgreSQL no temporary table stands in for the trail that an entry must follow."""

from django.db import migrations

from portal.audit.guard import renew


class Migration(migrations.Migration):
    dependencies = [
        ("audit", "0007_outage"),
    ]

    operations = [
        migrations.RunPython(renew, migrations.RunPython.noop),
    ]
