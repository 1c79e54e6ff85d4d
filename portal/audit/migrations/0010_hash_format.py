"""Each entry names the format of its hash, so that entries of an earlier one stay valid when the format changes."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("audit", "0009_record_key"),
    ]

    operations = [
        migrations.AddField(
            model_name="entry",
            name="hash_format",
            field=models.PositiveSmallIntegerField(db_default=1),
        ),
    ]
