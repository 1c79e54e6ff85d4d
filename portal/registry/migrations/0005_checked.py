"""The index by which is counted how much of a list was checked within a day."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("registry", "0004_refolded"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="record",
            index=models.Index(
                condition=models.Q(("archived_at__isnull", True)),
                fields=["kind", "checked_at", "product"],
                name="records_by_checked_at",
            ),
        ),
    ]
