"""When the service created an application."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("registry", "0012_known_spelling")]

    operations = [
        migrations.AddField(
            "record",
            "submitted_at",
            models.DateTimeField(
                help_text="When the service created an application; a guess if the time zone is uncertain.",
                null=True,
            ),
        )
    ]
