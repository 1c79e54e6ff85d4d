"""The tables of version 2.0 for a new database; one of an earlier version runs the migrations that it replaces."""

import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import portal.accounts.encryption


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ("borrowers", "0001_initial"),
        ("borrowers", "0002_encrypted_drafts"),
    ]

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Draft",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "submit_id",
                    models.UUIDField(
                        default=uuid.uuid4, help_text="Makes every page of this draft send once."
                    ),
                ),
                (
                    "step",
                    models.CharField(
                        choices=[
                            ("business", "Business"),
                            ("address", "Address"),
                            ("people", "Key people"),
                            ("reports", "Reports"),
                            ("review", "Review and send"),
                        ],
                        default="business",
                        help_text="Where to resume.",
                        max_length=10,
                    ),
                ),
                (
                    "data",
                    portal.accounts.encryption.EncryptedField(
                        default=dict, help_text="For each step the typed text of its forms."
                    ),
                ),
                (
                    "refusal",
                    portal.accounts.encryption.EncryptedField(
                        default=dict, help_text="Why the last sending was refused."
                    ),
                ),
                (
                    "asset_report",
                    portal.accounts.encryption.EncryptedBinaryField(help_text="Compressed.", null=True),
                ),
                ("asset_report_name", portal.accounts.encryption.EncryptedField(blank=True, default=str)),
                ("asset_report_size", models.PositiveIntegerField(default=0)),
                ("asset_report_compressed", models.PositiveIntegerField(default=0)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True, db_index=True)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="drafts",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["-updated_at"],
            },
        ),
    ]
