"""The tables of version 2.0 for a new database; one of an earlier version runs the migrations that it replaces."""

import uuid

import django.core.serializers.json
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ("documents", "0001_initial"),
        ("documents", "0002_one_path"),
        ("documents", "0003_index_of_items"),
    ]

    dependencies = [
        ("audit", "0001_initial"),
        ("jobs", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="Batch",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                ("actor_id", models.BigIntegerField(null=True)),
                ("actor_name", models.CharField(max_length=300)),
                ("actor_role", models.CharField(blank=True, max_length=20)),
                ("actor_ip", models.GenericIPAddressField(null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True, db_index=True)),
                (
                    "form",
                    models.CharField(
                        choices=[
                            ("joined", "One PDF with all of them"),
                            ("zip", "One PDF each, in a ZIP file"),
                        ],
                        default="zip",
                        max_length=10,
                    ),
                ),
                (
                    "chosen",
                    models.CharField(
                        help_text="What narrowed the list of borrowers, in words.", max_length=500
                    ),
                ),
                ("options", models.TextField(blank=True, help_text="What is printed, as a query string.")),
                ("zone", models.CharField(max_length=50)),
                (
                    "document",
                    models.BinaryField(
                        help_text="The joined PDF; items of a ZIP file have their own.", null=True
                    ),
                ),
                ("removed_at", models.DateTimeField(null=True)),
                (
                    "job",
                    models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to="jobs.job"),
                ),
            ],
            options={
                "verbose_name_plural": "batches",
                "ordering": ["-created_at"],
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="LongDocument",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                ("actor_id", models.BigIntegerField(null=True)),
                ("actor_name", models.CharField(max_length=300)),
                ("actor_role", models.CharField(blank=True, max_length=20)),
                ("actor_ip", models.GenericIPAddressField(null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True, db_index=True)),
                ("title", models.CharField(max_length=300)),
                ("file_name", models.CharField(max_length=140)),
                ("html", models.TextField(help_text="The laid out document; empty once there is a PDF.")),
                (
                    "print_entry",
                    models.JSONField(
                        encoder=django.core.serializers.json.DjangoJSONEncoder,
                        help_text="What the audit trail will say about it.",
                    ),
                ),
                ("document", models.BinaryField(null=True)),
                ("reason", models.CharField(blank=True, help_text="Why there is no PDF.", max_length=500)),
                (
                    "job",
                    models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to="jobs.job"),
                ),
            ],
            options={
                "ordering": ["-created_at"],
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="Printed",
            fields=[
                ("code", models.CharField(max_length=24, primary_key=True, serialize=False)),
                (
                    "entry",
                    models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, to="audit.entry"),
                ),
            ],
            options={
                "verbose_name_plural": "printed",
            },
        ),
        migrations.CreateModel(
            name="Item",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("position", models.PositiveIntegerField()),
                ("borrower_uuid", models.CharField(max_length=64)),
                ("label", models.CharField(max_length=300)),
                (
                    "state",
                    models.CharField(
                        choices=[("waiting", "Waiting"), ("done", "Done"), ("failed", "Failed")],
                        default="waiting",
                        max_length=10,
                    ),
                ),
                ("reason", models.CharField(blank=True, max_length=500)),
                ("code", models.CharField(blank=True, max_length=24)),
                ("file_name", models.CharField(blank=True, max_length=140)),
                ("document", models.BinaryField(null=True)),
                (
                    "batch",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="items",
                        to="documents.batch",
                    ),
                ),
            ],
            options={
                "ordering": ["position"],
                "indexes": [models.Index(fields=["batch", "state", "position"], name="items_of_batch")],
                "constraints": [
                    models.UniqueConstraint(fields=("batch", "borrower_uuid"), name="one_item_per_borrower"),
                    models.CheckConstraint(
                        condition=models.Q(("state", "done"), ("document__isnull", True), _connector="OR"),
                        name="only_done_items_have_documents",
                    ),
                ],
            },
        ),
    ]
