"""The tables of version 2.0 for a new database; one of an earlier version runs the migrations that it replaces."""

from typing import Any

import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models

from portal.records.migration_steps import create_extension


def index_texts(apps: Any, schema_editor: Any) -> None:
    """Index the trigrams of texts; SQLite reads those of a month instead."""
    if schema_editor.connection.vendor == "postgresql":
        create_extension(apps, schema_editor)
        schema_editor.execute(
            "CREATE INDEX messages_by_text ON messaging_message USING gin (search_text gin_trgm_ops)"
        )


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ("messaging", "0001_initial"),
        ("messaging", "0002_known_spelling"),
        ("messaging", "0003_pending_reads"),
        ("messaging", "0004_readings"),
        ("messaging", "0005_fold_again"),
        ("messaging", "0006_plain_rows"),
        ("messaging", "0007_fill_rows"),
        ("messaging", "0008_indexes"),
        # Its model of accounts is that of the last one of records: until that ran, an upgrade goes on one by one.
        ("registry", "0047_add_plain_indexes"),
    ]

    dependencies = [
        ("registry", "0001_squashed_0047_add_plain_indexes"),
    ]

    operations = [
        migrations.CreateModel(
            name="BankAccount",
            fields=[
                ("uuid", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("borrower_uuid", models.CharField(db_index=True, max_length=64)),
                ("linked_by", models.CharField(max_length=300)),
                ("linked_at", models.DateTimeField(auto_now=True)),
            ],
        ),
        migrations.CreateModel(
            name="Day",
            fields=[
                ("day", models.DateField(primary_key=True, serialize=False)),
                ("claimed", models.PositiveIntegerField()),
                ("checked_at", models.DateTimeField()),
                (
                    "listed",
                    models.PositiveIntegerField(
                        help_text="How many messages the service listed when they were last compared.",
                        null=True,
                    ),
                ),
                (
                    "unusable",
                    models.PositiveIntegerField(
                        db_default=0,
                        default=0,
                        help_text="How many it listed without a usable ID, which can't be saved.",
                    ),
                ),
                (
                    "compared_at",
                    models.DateTimeField(help_text="When each message was last compared.", null=True),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Run",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("started_at", models.DateTimeField(auto_now_add=True)),
                (
                    "seen_at",
                    models.DateTimeField(auto_now=True, help_text="When it last said how far it is."),
                ),
                ("ended_at", models.DateTimeField(null=True)),
                ("by", models.CharField(max_length=300)),
                ("since", models.DateField(null=True)),
                ("until", models.DateField(null=True)),
                ("day", models.DateField(help_text="The day that is being read.", null=True)),
                (
                    "claimed",
                    models.PositiveIntegerField(default=0, help_text="How many messages the service listed."),
                ),
                (
                    "missing",
                    models.PositiveIntegerField(
                        default=0, help_text="How many messages seemed to be missing when it began."
                    ),
                ),
                ("added", models.PositiveIntegerField(default=0)),
                ("already_here", models.PositiveIntegerField(db_default=0, default=0)),
                (
                    "gone",
                    models.PositiveIntegerField(
                        db_default=0, default=0, help_text="How many the service no longer has."
                    ),
                ),
                (
                    "unusable",
                    models.PositiveIntegerField(
                        db_default=0,
                        default=0,
                        help_text="How many messages have no usable ID, so they can't be saved.",
                    ),
                ),
                (
                    "unusable_names",
                    models.TextField(blank=True, db_default="", default="", help_text="The first of them."),
                ),
                (
                    "filters_ignored",
                    models.BooleanField(
                        db_default=False, default=False, help_text="Whether the service ignored the days."
                    ),
                ),
                ("failure", models.TextField(blank=True)),
                (
                    "newest",
                    models.JSONField(
                        default=list, help_text="The IDs on the first page of the list that it read."
                    ),
                ),
                (
                    "reached",
                    models.JSONField(
                        help_text="The last page that it saved: its limit, offset, what that counts, and the total.",
                        null=True,
                    ),
                ),
                (
                    "is_unbroken",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="Whether every message at or below its newest ones is saved.",
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
            },
        ),
        migrations.CreateModel(
            name="Message",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("uuid", models.TextField(unique=True)),
                ("event", models.CharField(blank=True, max_length=100)),
                ("status", models.CharField(blank=True, max_length=40)),
                (
                    "recorded_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now,
                        help_text="Its place in order of time; if uncertain, a guess within its day.",
                    ),
                ),
                ("recorded_text", models.TextField(blank=True, help_text="The time as the service sent it.")),
                ("day", models.DateField(help_text="The day by which the service counts it.")),
                (
                    "is_placed",
                    models.BooleanField(default=True, help_text="Whether that day is certain, and no guess."),
                ),
                ("product", models.CharField(blank=True, max_length=40)),
                ("payment_status", models.CharField(blank=True, max_length=40)),
                ("amount", models.DecimalField(decimal_places=4, max_digits=20, null=True)),
                (
                    "subject_uuid",
                    models.CharField(
                        blank=True, help_text="What the payload is: a repayment.", max_length=64
                    ),
                ),
                ("bank_account", models.CharField(blank=True, max_length=64)),
                (
                    "stored_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now, help_text="When it was first seen here."
                    ),
                ),
                (
                    "gone_at",
                    models.DateTimeField(
                        help_text="When the service was found not to list it any more.", null=True
                    ),
                ),
                (
                    "body",
                    models.TextField(help_text="The message as exact JSON text, with its first payload."),
                ),
                (
                    "changed_payload",
                    models.TextField(
                        help_text="The payload as last listed, if it isn't the first one.", null=True
                    ),
                ),
                (
                    "payload",
                    models.JSONField(
                        help_text="The first payload with folded texts, to find values at their path. Never shown.",
                        null=True,
                    ),
                ),
                ("search_text", models.TextField(blank=True, help_text="Every value, folded, one a line.")),
            ],
            options={
                "ordering": ["-recorded_at", "-id"],
                "indexes": [
                    models.Index(fields=["recorded_at", "id"], name="messages_by_time"),
                    models.Index(fields=["event", "recorded_at", "id"], name="messages_by_event"),
                    models.Index(fields=["status", "recorded_at", "id"], name="messages_by_status"),
                    models.Index(fields=["product", "recorded_at", "id"], name="messages_by_product"),
                    models.Index(
                        fields=["payment_status", "recorded_at", "id"], name="messages_by_payment_status"
                    ),
                    models.Index(fields=["amount"], name="messages_by_amount"),
                    models.Index(fields=["subject_uuid"], name="messages_by_subject_uuid"),
                    models.Index(fields=["bank_account"], name="messages_by_bank_account"),
                    models.Index(fields=["day", "is_placed", "gone_at"], name="messages_by_day"),
                    models.Index(fields=["stored_at"], name="messages_by_stored_at"),
                    models.Index(
                        condition=models.Q(("gone_at__isnull", False)),
                        fields=["recorded_at"],
                        name="messages_gone",
                    ),
                    models.Index(
                        condition=models.Q(("changed_payload__isnull", False)),
                        fields=["recorded_at"],
                        name="messages_changed",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="PendingRead",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "news_at",
                    models.DateTimeField(
                        help_text="The time of the newest message; the newest is read first."
                    ),
                ),
                (
                    "payment_uuid",
                    models.CharField(blank=True, help_text="The payment that it is about.", max_length=64),
                ),
                ("noticed_at", models.DateTimeField()),
                (
                    "due_at",
                    models.DateTimeField(db_index=True, help_text="Null: nothing to read.", null=True),
                ),
                ("read_at", models.DateTimeField(null=True)),
                (
                    "tries",
                    models.PositiveSmallIntegerField(
                        default=0, help_text="Reads that failed, or missed the payment."
                    ),
                ),
                (
                    "account",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="pending_read",
                        to="registry.account",
                    ),
                ),
            ],
        ),
        migrations.RunPython(index_texts, migrations.RunPython.noop),
    ]
