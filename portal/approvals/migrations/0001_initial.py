"""Writes that wait for a second person."""

import uuid

import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Approval",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "Waiting"),
                            ("approved", "Approved"),
                            ("refused", "Rejected"),
                            ("withdrawn", "Withdrawn"),
                            ("expired", "Expired"),
                            ("sending", "Being sent"),
                            ("unknown", "Outcome unknown"),
                            ("sent", "Sent"),
                        ],
                        db_index=True,
                        default="waiting",
                        max_length=10,
                    ),
                ),
                ("operation", models.CharField(max_length=60)),
                ("subject_kind", models.CharField(max_length=20)),
                ("subject_uuid", models.CharField(db_index=True, max_length=64)),
                ("borrower_uuid", models.CharField(db_index=True, max_length=64)),
                ("label", models.CharField(max_length=300)),
                ("url", models.CharField(help_text="Where its maker sends it.", max_length=300)),
                ("version", models.CharField(help_text="The copy that it changes.", max_length=64)),
                ("acts", models.JSONField(default=list, help_text="What of it needs a second person.")),
                ("sealed", models.TextField(blank=True, help_text="What was typed and what it changes.")),
                ("reason", models.CharField(blank=True, max_length=500)),
                ("maker_id", models.BigIntegerField(db_index=True)),
                ("maker_name", models.CharField(max_length=300)),
                ("asked_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("expires_at", models.DateTimeField(db_index=True)),
                ("checker_name", models.CharField(blank=True, max_length=300)),
                ("decided_at", models.DateTimeField(null=True)),
                ("comment", models.CharField(blank=True, max_length=500)),
                ("intent_id", models.UUIDField(null=True)),
            ],
            options={
                "ordering": ["-asked_at"],
            },
        ),
    ]
