"""Webhook messages."""

import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

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
                        db_column="kept",
                        help_text="How many messages the service listed when it was last read to its end.",
                        null=True,
                    ),
                ),
                (
                    "digest",
                    models.BigIntegerField(db_default=0, default=0, help_text="Of the IDs that it listed."),
                ),
                ("read_at", models.DateTimeField(help_text="When it was last read to its end.", null=True)),
                (
                    "offset",
                    models.PositiveIntegerField(
                        help_text="Where a reading that was cut off goes on.", null=True
                    ),
                ),
                (
                    "counts",
                    models.CharField(
                        blank=True, help_text="What an offset was found to count.", max_length=6
                    ),
                ),
                (
                    "part_listed",
                    models.PositiveIntegerField(
                        db_default=0, default=0, help_text="How many were listed up to there."
                    ),
                ),
                ("part_digest", models.BigIntegerField(db_default=0, default=0)),
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
                    models.PositiveIntegerField(default=0, help_text="How many the service claims in all."),
                ),
                (
                    "missing",
                    models.PositiveIntegerField(
                        default=0, help_text="How many of them were missing when it began."
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
                    "filters_ignored",
                    models.BooleanField(
                        db_default=False, default=False, help_text="Whether it read the list without filters."
                    ),
                ),
                ("failure", models.TextField(blank=True)),
            ],
            options={
                "ordering": ["-id"],
            },
        ),
        migrations.CreateModel(
            name="Message",
            fields=[
                ("id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("uuid", models.TextField(unique=True)),
                ("event", models.CharField(blank=True, max_length=100)),
                ("status", models.CharField(blank=True, max_length=40)),
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
                ("stored_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "gone_at",
                    models.DateTimeField(
                        help_text="When the service was found not to list it any more.", null=True
                    ),
                ),
                ("body", models.TextField(help_text="The message as exact JSON text.")),
                ("search_text", models.TextField(blank=True)),
            ],
            options={
                "ordering": ["-id"],
                "indexes": [
                    models.Index(
                        fields=["event", "-id", "status", "product", "payment_status", "amount"],
                        name="messages_by_event",
                    ),
                    models.Index(
                        fields=["status", "-id", "event", "product", "payment_status", "amount"],
                        name="messages_by_status",
                    ),
                    models.Index(
                        fields=["product", "-id", "event", "status", "payment_status", "amount"],
                        name="messages_by_product",
                    ),
                    models.Index(
                        fields=["payment_status", "-id", "event", "status", "product", "amount"],
                        name="messages_by_payment_status",
                    ),
                    models.Index(
                        fields=[
                            "subject_uuid",
                            "-id",
                            "event",
                            "status",
                            "product",
                            "payment_status",
                            "amount",
                        ],
                        name="messages_of_subject_uuid",
                    ),
                    models.Index(
                        fields=[
                            "bank_account",
                            "-id",
                            "event",
                            "status",
                            "product",
                            "payment_status",
                            "amount",
                        ],
                        name="messages_of_bank_account",
                    ),
                    models.Index(
                        fields=["amount", "-id", "event", "status", "product", "payment_status"],
                        name="messages_of_amount",
                    ),
                    models.Index(fields=["day", "is_placed", "gone_at", "id"], name="messages_of_day"),
                    models.Index(fields=["stored_at"], name="messages_by_stored_at"),
                    models.Index(
                        condition=models.Q(("gone_at__isnull", False)),
                        fields=["gone_at"],
                        name="messages_by_gone_at",
                    ),
                ],
            },
        ),
    ]
