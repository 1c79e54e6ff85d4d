"""Lets all processes know together that the service leaves them without an answer."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("audit", "0006_by_write"),
    ]

    operations = [
        migrations.CreateModel(
            name="Outage",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("since", models.DateTimeField()),
                (
                    "tries",
                    models.PositiveIntegerField(default=0, help_text="So many in a row got no answer."),
                ),
                ("ask_again_at", models.DateTimeField()),
            ],
        ),
    ]
