"""The tables of version 2.0 for a new database; one of an earlier version runs the migrations that it replaces."""

import uuid

import django.core.serializers.json
from django.db import migrations, models

from portal.audit.guard import create, drop


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ("audit", "0001_initial"),
        ("audit", "0002_save_id"),
        ("audit", "0003_page_views"),
    ]

    dependencies = []

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
        migrations.CreateModel(
            name="Entry",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("at", models.DateTimeField(db_index=True)),
                ("actor_id", models.BigIntegerField(db_index=True, null=True)),
                ("actor_name", models.CharField(max_length=300)),
                (
                    "actor_role",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("viewer", "Viewer"),
                            ("servicer", "Servicer"),
                            ("supervisor", "Supervisor"),
                            ("auditor", "Auditor"),
                            ("admin", "Administrator"),
                            ("system", "System"),
                        ],
                        max_length=20,
                    ),
                ),
                ("ip", models.GenericIPAddressField(null=True)),
                ("user_agent", models.CharField(blank=True, max_length=300)),
                ("request_id", models.CharField(blank=True, db_index=True, max_length=60)),
                ("action", models.CharField(db_index=True, max_length=60)),
                (
                    "phase",
                    models.CharField(
                        choices=[("event", "Event"), ("attempt", "Attempt"), ("outcome", "Outcome")],
                        default="event",
                        max_length=10,
                    ),
                ),
                ("intent_id", models.UUIDField(null=True)),
                ("result", models.CharField(blank=True, max_length=20)),
                ("subject_kind", models.CharField(blank=True, max_length=20)),
                ("subject_uuid", models.CharField(blank=True, db_index=True, max_length=64)),
                ("subject_label", models.CharField(blank=True, max_length=300)),
                ("borrower_uuid", models.CharField(blank=True, db_index=True, max_length=64)),
                ("reason", models.CharField(blank=True, max_length=500)),
                (
                    "changes",
                    models.JSONField(default=dict, encoder=django.core.serializers.json.DjangoJSONEncoder),
                ),
                (
                    "detail",
                    models.JSONField(default=dict, encoder=django.core.serializers.json.DjangoJSONEncoder),
                ),
                ("previous_hash", models.CharField(max_length=64, unique=True)),
                ("hash", models.CharField(max_length=64, unique=True)),
                ("hash_format", models.PositiveSmallIntegerField(db_default=1)),
                (
                    "save_id",
                    models.UUIDField(help_text="Of the form that was posted; it counts once.", null=True),
                ),
            ],
            options={
                "verbose_name_plural": "entries",
                "ordering": ["-id"],
                "indexes": [
                    models.Index(fields=["intent_id"], name="entries_of_a_write"),
                    models.Index(
                        condition=models.Q(("save_id__isnull", False)),
                        fields=["save_id"],
                        name="entries_of_a_form",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(
                            ("intent_id__isnull", False), models.Q(("phase", "event"), _negated=True)
                        ),
                        fields=("intent_id", "phase"),
                        name="one_attempt_and_one_outcome",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="PageView",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("actor_id", models.BigIntegerField()),
                ("actor_name", models.CharField(max_length=300)),
                (
                    "actor_role",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("viewer", "Viewer"),
                            ("servicer", "Servicer"),
                            ("supervisor", "Supervisor"),
                            ("auditor", "Auditor"),
                            ("admin", "Administrator"),
                            ("system", "System"),
                        ],
                        max_length=20,
                    ),
                ),
                ("request_id", models.CharField(blank=True, help_text="Of the first view.", max_length=60)),
                ("page", models.CharField(max_length=60)),
                ("subject_kind", models.CharField(blank=True, max_length=20)),
                ("subject_uuid", models.CharField(max_length=64)),
                ("subject_label", models.CharField(blank=True, max_length=300)),
                ("borrower_uuid", models.CharField(blank=True, max_length=64)),
                (
                    "detail",
                    models.JSONField(default=dict, encoder=django.core.serializers.json.DjangoJSONEncoder),
                ),
                ("first_at", models.DateTimeField()),
                ("last_at", models.DateTimeField()),
                ("count", models.PositiveIntegerField(default=1)),
                (
                    "shown",
                    models.CharField(
                        blank=True, help_text="The digest of the answer they saw last.", max_length=64
                    ),
                ),
            ],
            options={
                "ordering": ["-last_at", "-id"],
                "indexes": [
                    models.Index(fields=["subject_uuid", "actor_id", "first_at"], name="views_of_a_subject"),
                    models.Index(fields=["borrower_uuid", "last_at"], name="views_of_a_borrower"),
                    models.Index(fields=["actor_id", "last_at"], name="views_by_a_person"),
                    models.Index(fields=["last_at"], name="latest_views"),
                ],
            },
        ),
        migrations.CreateModel(
            name="RemoteCall",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("at", models.DateTimeField(auto_now_add=True, db_index=True)),
                ("operation", models.CharField(db_index=True, max_length=60)),
                ("method", models.CharField(max_length=8)),
                ("path", models.CharField(max_length=500)),
                ("outcome", models.CharField(db_index=True, max_length=20)),
                ("status", models.PositiveSmallIntegerField(null=True)),
                ("duration_ms", models.PositiveIntegerField()),
                ("tries", models.PositiveSmallIntegerField(default=1)),
                ("request_id", models.CharField(db_index=True, max_length=60)),
                ("actor_id", models.BigIntegerField(null=True)),
                ("actor_name", models.CharField(blank=True, max_length=300)),
                ("intent_id", models.UUIDField(null=True)),
                ("error", models.TextField(blank=True)),
                ("request_body", models.TextField(blank=True)),
                ("answer_body", models.TextField(blank=True)),
            ],
            options={
                "ordering": ["-id"],
                "indexes": [models.Index(fields=["intent_id"], name="calls_of_a_write")],
            },
        ),
        migrations.CreateModel(
            name="WriteIntent",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                ("submit_id", models.CharField(max_length=64, unique=True)),
                ("fingerprint", models.CharField(blank=True, max_length=64)),
                (
                    "record_key",
                    models.CharField(
                        blank=True,
                        db_default="",
                        help_text="The remote record that it changes.",
                        max_length=90,
                    ),
                ),
                ("operation", models.CharField(max_length=60)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("sending", "Sending"),
                            ("confirmed", "Confirmed"),
                            ("rejected", "Rejected"),
                            ("not_sent", "Not sent"),
                            ("unknown", "Outcome unknown"),
                            ("released", "Not carried out"),
                        ],
                        db_index=True,
                        default="sending",
                        max_length=10,
                    ),
                ),
                ("label", models.CharField(max_length=300)),
                ("reason", models.CharField(blank=True, max_length=500)),
                ("subject_kind", models.CharField(blank=True, max_length=20)),
                ("subject_uuid", models.CharField(blank=True, max_length=64)),
                ("borrower_uuid", models.CharField(blank=True, db_index=True, max_length=64)),
                ("actor_id", models.BigIntegerField(db_index=True, null=True)),
                ("actor_name", models.CharField(max_length=300)),
                ("request_id", models.CharField(db_index=True, max_length=60)),
                ("method", models.CharField(max_length=8)),
                ("path", models.CharField(max_length=500)),
                (
                    "request_body",
                    models.JSONField(
                        encoder=django.core.serializers.json.DjangoJSONEncoder, help_text="Masked.", null=True
                    ),
                ),
                ("status", models.PositiveSmallIntegerField(null=True)),
                ("message", models.TextField(blank=True, help_text="The service's own words.")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("finished_at", models.DateTimeField(null=True)),
            ],
            options={
                "ordering": ["-created_at"],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(
                            ("state__in", ["sending", "unknown"]),
                            models.Q(("fingerprint", ""), _negated=True),
                        ),
                        fields=("fingerprint",),
                        name="one_open_intent_for_equal_creations",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("state", "sending"), models.Q(("record_key", ""), _negated=True)),
                        fields=("record_key",),
                        name="one_write_at_a_time_to_a_record",
                    ),
                ],
            },
        ),
        migrations.RunPython(create, drop),
    ]
