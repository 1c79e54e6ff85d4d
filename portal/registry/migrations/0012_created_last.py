"""What was created long ago is found among the last changed by an index alone."""

from django.db import migrations, models

from portal.registry.table_statistics import analyze_after_migration


class Migration(migrations.Migration):
    dependencies = [
        ("registry", "0011_ahead"),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name="record",
            name="records_by_updated_at",
        ),
        migrations.AddIndex(
            model_name="record",
            index=models.Index(
                condition=models.Q(("archived_at__isnull", True)),
                fields=["kind", "-updated_at", "-id", "created_at"],
                name="records_by_updated_at",
            ),
        ),
        migrations.RunPython(analyze_after_migration, migrations.RunPython.noop),
    ]
