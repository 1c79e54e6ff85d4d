"""Finds the entries and calls of a write without looking at all of them, in the guard's trigger too."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("audit", "0005_released"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="entry",
            index=models.Index(fields=["intent_id"], name="entries_of_a_write"),
        ),
        migrations.AddIndex(
            model_name="remotecall",
            index=models.Index(fields=["intent_id"], name="calls_of_a_write"),
        ),
    ]
