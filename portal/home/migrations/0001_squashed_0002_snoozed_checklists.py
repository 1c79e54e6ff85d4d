"""The tables of version 2.0 for a new database; one of an earlier version runs the migrations that it replaces."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ("home", "0001_initial"),
        ("home", "0002_snoozed_checklists"),
    ]

    dependencies = [
        ("saved_views", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Snooze",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "key",
                    models.CharField(
                        help_text="Which line; see portal.home.attention.", max_length=100, unique=True
                    ),
                ),
                ("label", models.CharField(max_length=300)),
                ("until", models.DateField(help_text="The day on which it comes back.")),
                ("reason", models.CharField(max_length=200)),
                ("by_id", models.BigIntegerField()),
                ("by_name", models.CharField(max_length=300)),
                ("at", models.DateTimeField(auto_now=True)),
            ],
            options={
                "ordering": ["until", "id"],
            },
        ),
        migrations.CreateModel(
            name="Pin",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "view",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="saved_views.savedview"
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("owner", "view"), name="one_pin_per_view")],
            },
        ),
    ]
