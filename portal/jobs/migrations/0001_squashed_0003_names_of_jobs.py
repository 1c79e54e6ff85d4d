"""The tables of version 2.0 for a new database; one of an earlier version runs the migrations that it replaces."""

import uuid

import django.core.serializers.json
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ("jobs", "0001_initial"),
        ("jobs", "0002_one_queue"),
        ("jobs", "0003_names_of_jobs"),
    ]

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Schedule",
            fields=[
                ("name", models.CharField(max_length=60, primary_key=True, serialize=False)),
                ("begun_at", models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name="Worker",
            fields=[
                ("id", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("started_at", models.DateTimeField(auto_now_add=True)),
                ("beat_at", models.DateTimeField()),
                ("stopped_at", models.DateTimeField(help_text="When it stopped on request.", null=True)),
            ],
            options={
                "ordering": ["-beat_at"],
            },
        ),
        migrations.CreateModel(
            name="Job",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                ("name", models.CharField(db_index=True, max_length=60)),
                ("label", models.CharField(max_length=200)),
                (
                    "key",
                    models.CharField(
                        blank=True, help_text="Of the jobs with a key only one is open.", max_length=60
                    ),
                ),
                (
                    "arguments",
                    models.JSONField(default=dict, encoder=django.core.serializers.json.DjangoJSONEncoder),
                ),
                ("actor_id", models.BigIntegerField(null=True)),
                ("actor_name", models.CharField(max_length=300)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "Waiting"),
                            ("running", "Running"),
                            ("done", "Done"),
                            ("failed", "Failed"),
                            ("cancelled", "Canceled"),
                        ],
                        db_index=True,
                        default="waiting",
                        max_length=10,
                    ),
                ),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                ("done", models.PositiveIntegerField(default=0)),
                ("total", models.PositiveIntegerField(null=True)),
                ("failed", models.PositiveIntegerField(default=0)),
                ("words", models.CharField(blank=True, max_length=300)),
                (
                    "result",
                    models.JSONField(encoder=django.core.serializers.json.DjangoJSONEncoder, null=True),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True, db_index=True)),
                ("started_at", models.DateTimeField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
                ("cancel_asked_at", models.DateTimeField(null=True)),
                (
                    "due_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now,
                        help_text="When it may start; while it runs, when its worker counts as lost.",
                    ),
                ),
                ("worker", models.CharField(blank=True, max_length=64)),
            ],
            options={
                "ordering": ["-created_at"],
                "indexes": [models.Index(fields=["state", "due_at"], name="due_jobs")],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(
                            ("state__in", ["waiting", "running"]), models.Q(("key", ""), _negated=True)
                        ),
                        fields=("key",),
                        name="one_open_job_of_a_kind",
                    )
                ],
            },
        ),
    ]
