"""The tables of version 2.0 for a new database; one of an earlier version runs the migrations that it replaces."""

from decimal import Decimal

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ("collections", "0001_initial"),
        ("collections", "0002_promise_broken_on"),
        ("collections", "0003_folded_text"),
        ("collections", "0004_promise_state"),
    ]

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Contact",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("borrower_uuid", models.CharField(db_index=True, max_length=64)),
                ("account_kind", models.CharField(blank=True, max_length=16)),
                ("account_uuid", models.CharField(blank=True, db_index=True, max_length=64)),
                (
                    "person",
                    models.CharField(
                        help_text="Who was called or written to, with the number.", max_length=300
                    ),
                ),
                (
                    "channel",
                    models.CharField(
                        choices=[
                            ("phone", "Phone"),
                            ("email", "Email"),
                            ("text", "Text message"),
                            ("letter", "Letter"),
                            ("in_person", "In person"),
                        ],
                        max_length=16,
                    ),
                ),
                (
                    "outcome",
                    models.CharField(
                        choices=[
                            ("reached", "Reached"),
                            ("left_message", "Left message"),
                            ("wrong_number", "Wrong number"),
                            ("promised", "Promised to pay"),
                            ("disputes", "Disputes the amount"),
                            ("hardship", "Hardship"),
                            ("other", "Other"),
                        ],
                        max_length=16,
                    ),
                ),
                ("note", models.TextField(blank=True)),
                ("next_action", models.CharField(blank=True, max_length=200)),
                ("next_on", models.DateField(null=True)),
                (
                    "folded_text",
                    models.TextField(
                        db_default="", editable=False, help_text="The note and the next action."
                    ),
                ),
                ("author_id", models.BigIntegerField()),
                ("author_name", models.CharField(max_length=300)),
                ("at", models.DateTimeField(auto_now_add=True)),
                ("day", models.DateField(help_text="The business date.")),
            ],
            options={
                "ordering": ["-at", "-id"],
            },
        ),
        migrations.CreateModel(
            name="AccountOwner",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("account_uuid", models.CharField(max_length=64, unique=True)),
                ("since", models.DateTimeField(auto_now=True)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="collection_accounts",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Promise",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("account_uuid", models.CharField(db_index=True, max_length=64)),
                ("amount", models.DecimalField(decimal_places=2, max_digits=20)),
                ("day", models.DateField(db_index=True)),
                ("logged_on", models.DateField(help_text="The business date.")),
                ("logged_at", models.DateTimeField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("OPEN", "Open"),
                            ("PENDING", "Payment pending"),
                            ("KEPT", "Kept"),
                            ("WAITING", "Awaiting update"),
                            ("BROKEN", "Broken"),
                            ("NOT_KNOWN", "Not known"),
                            ("WITHDRAWN", "Withdrawn"),
                        ],
                        db_default="",
                        help_text="Empty until it is decided for the first time.",
                        max_length=16,
                    ),
                ),
                (
                    "deadline",
                    models.DateField(
                        help_text="Its day with the days of grace, when it was decided.", null=True
                    ),
                ),
                (
                    "paid",
                    models.DecimalField(
                        decimal_places=4,
                        default=Decimal("0"),
                        help_text="By the repayments that count for it.",
                        max_digits=20,
                    ),
                ),
                (
                    "decided_on",
                    models.DateField(help_text="The business date on which it was decided.", null=True),
                ),
                (
                    "broken_on",
                    models.DateField(
                        help_text="The business date on which it was first seen broken.", null=True
                    ),
                ),
                ("withdrawn_at", models.DateTimeField(null=True)),
                ("withdrawn_by", models.CharField(blank=True, max_length=300)),
                ("reason", models.CharField(blank=True, help_text="Why it was withdrawn.", max_length=200)),
                (
                    "contact",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="promise",
                        to="collections.contact",
                    ),
                ),
            ],
            options={
                "ordering": ["logged_at", "id"],
                "indexes": [models.Index(fields=["state", "deadline"], name="promise_state")],
            },
        ),
    ]
