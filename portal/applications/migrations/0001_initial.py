"""Seen offers of applications."""

from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Preference",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("application_uuid", models.CharField(max_length=64, unique=True)),
                ("offer_uuid", models.CharField(max_length=64)),
                ("reason", models.CharField(max_length=200)),
                ("author_name", models.CharField(max_length=300)),
                ("at", models.DateTimeField(auto_now=True)),
            ],
        ),
    ]
