"""The business dates between which a text was received, which a demo's days that pass don't change."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("registry", "0039_indexes_of_borrowers")]

    operations = [
        migrations.AddField(
            "answer",
            "first_on",
            models.DateField(
                null=True,
                help_text="The business date on which this text was received first; null if not known.",
            ),
        ),
        migrations.AddField(
            "snapshot",
            "first_on",
            models.DateField(null=True, help_text="The business date of the first; null if not known."),
        ),
        migrations.AddField(
            "snapshot",
            "last_on",
            models.DateField(null=True, help_text="The business date of the last; null if not known."),
        ),
    ]
