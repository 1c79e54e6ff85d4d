"""The tables of version 2.0 for a new database; one of an earlier version runs the migrations that it replaces."""

from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ("lookup", "0001_initial"),
        ("lookup", "0002_exported_at"),
    ]

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Upload",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("what", models.CharField(choices=[("ids", "IDs"), ("profiles", "Profiles")], max_length=10)),
                ("name", models.CharField(max_length=300)),
                ("exported_at", models.DateTimeField(help_text="Its profiles hide no answer that is newer.")),
                ("content", models.BinaryField(null=True)),
                ("by_name", models.CharField(max_length=300)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("job_id", models.UUIDField(null=True)),
                ("taken", models.PositiveIntegerField(default=0)),
                ("refused_count", models.PositiveIntegerField(default=0)),
                (
                    "refused",
                    models.JSONField(
                        default=list, help_text="The first refused lines, each with its reason."
                    ),
                ),
                (
                    "remark",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="What is said of the lines that were taken.",
                    ),
                ),
                ("finished_at", models.DateTimeField(null=True)),
            ],
            options={
                "ordering": ["-created_at", "-id"],
            },
        ),
    ]
