"""Accounts say whether their figures contradict each other, for a filter of their lists."""

from django.db import migrations, models

from portal.registry.table_statistics import analyze_after_migration, drop_constant_kind_column


class Migration(migrations.Migration):
    dependencies = [
        ("registry", "0019_figures"),
    ]

    operations = [
        migrations.AddField(
            model_name="record",
            name="needs_check",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="Figures in the answer of an account contradict each other.",
            ),
        ),
        migrations.AddIndex(
            model_name="record",
            index=models.Index(
                condition=models.Q(("kind", "loan"), ("archived_at__isnull", True)),
                fields=["kind", "needs_check", "-updated_at", "-id"],
                name="loans_by_needs_check",
            ),
        ),
        migrations.AddIndex(
            model_name="record",
            index=models.Index(
                condition=models.Q(("kind", "line"), ("archived_at__isnull", True)),
                fields=["kind", "needs_check", "-updated_at", "-id"],
                name="lines_by_needs_check",
            ),
        ),
        migrations.RunPython(drop_constant_kind_column, migrations.RunPython.noop),
        migrations.RunPython(analyze_after_migration, migrations.RunPython.noop),
    ]
