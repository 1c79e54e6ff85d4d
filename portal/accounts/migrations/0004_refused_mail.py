"""An outcome of mail that the server refused for good, which no database stores."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0003_preferred_name"),
    ]

    operations = [
        migrations.AlterField(
            model_name="outgoingmail",
            name="state",
            field=models.CharField(
                choices=[
                    ("waiting", "Waiting"),
                    ("sending", "Being sent"),
                    ("sent", "Sent"),
                    ("unknown", "May have arrived"),
                    ("refused", "Refused"),
                    ("failed", "Given up"),
                ],
                default="waiting",
                max_length=10,
            ),
        ),
    ]
