"""Makes the local copy of messages and the index behind the search in it."""

import django.utils.timezone
from django.db import migrations, models

from portal.messaging.search_index import create, drop


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
                    "kept",
                    models.PositiveIntegerField(
                        help_text="How many were kept when it was last read to its end.", null=True
                    ),
                ),
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
                ("body", models.TextField(help_text="The message as exact JSON text.")),
                ("search_text", models.TextField(blank=True)),
                ("stored_at", models.DateTimeField(default=django.utils.timezone.now)),
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
                    models.Index(fields=["amount", "-id"], name="messages_by_amount"),
                    models.Index(fields=["day", "is_placed"], name="messages_by_day"),
                    models.Index(fields=["subject_uuid"], name="messages_by_subject_uuid"),
                    models.Index(fields=["bank_account"], name="messages_by_bank_account"),
                    models.Index(fields=["stored_at"], name="messages_by_stored_at"),
                ],
            },
        ),
        migrations.RunPython(create, drop),
    ]
