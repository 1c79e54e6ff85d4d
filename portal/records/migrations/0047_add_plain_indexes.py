"""The indexes that the migration before this one made room for."""

from importlib import import_module

from django.db import migrations, models
from django.db.models import Q

from portal.records.migration_steps import AddTextIndex, change_falling_indexes

plain = import_module("portal.records.migrations.0046_plain_indexes")


class Migration(migrations.Migration):
    dependencies = [("registry", "0046_plain_indexes")]

    operations = [
        migrations.AddConstraint(
            "account",
            models.UniqueConstraint(
                fields=["answer"], condition=Q(answer__isnull=False), name="one_record_per_answer"
            ),
        ),
        *(migrations.AddIndex(model, index) for model, indexes in plain.ADDED.items() for index in indexes),
        *(AddTextIndex(model, index) for model, index in plain.TEXTS.items()),
        migrations.RunPython(change_falling_indexes, migrations.RunPython.noop),
        migrations.RunPython(plain.update_statistics, migrations.RunPython.noop),
    ]
