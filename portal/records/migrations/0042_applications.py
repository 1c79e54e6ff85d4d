"""The table of applications, without the index of their texts, which the move would only slow down."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q

ORDERS = {
    "updated_at": ["-updated_at", "-id"],
    "created_at": ["-created_at", "-id"],
    "submitted_at": ["submitted_at", "id"],
    "amount": ["amount", "id"],
    "product": ["product", "id"],
    "decision": ["decision", "id"],
    "decision_time": ["decision", "submitted_at", "id"],
}


class Migration(migrations.Migration):
    dependencies = [("registry", "0041_not_known_last")]

    operations = [
        migrations.CreateModel(
            name="Application",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("uuid", models.CharField(max_length=64)),
                (
                    "answer_at",
                    models.DateTimeField(help_text="When its answer was received last.", null=True),
                ),
                ("answer_day", models.DateField(help_text="The business date of the answer.", null=True)),
                (
                    "checked_at",
                    models.DateTimeField(help_text="When the service last answered for it.", null=True),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("created_by", models.CharField(blank=True, max_length=300)),
                ("archived_at", models.DateTimeField(null=True)),
                ("borrower_uuid", models.CharField(blank=True, max_length=64)),
                (
                    "owner_confirmed",
                    models.BooleanField(default=False, help_text="Somebody chose the borrower."),
                ),
                (
                    "label",
                    models.CharField(blank=True, help_text="Its name by staff or a file.", max_length=300),
                ),
                ("product", models.CharField(blank=True, max_length=40)),
                ("decision", models.CharField(blank=True, max_length=40)),
                (
                    "amount",
                    models.DecimalField(
                        decimal_places=4, help_text="As requested.", max_digits=20, null=True
                    ),
                ),
                (
                    "submitted_at",
                    models.DateTimeField(
                        help_text="When the service created it; a guess if the time zone is uncertain.",
                        null=True,
                    ),
                ),
                (
                    "search_text",
                    models.TextField(blank=True, help_text="Its label and the IDs of its offers."),
                ),
                (
                    "answer",
                    models.OneToOneField(
                        help_text="What was said about it; null if nobody ever asked or answered.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="registry.answer",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("uuid",), name="one_application_per_uuid", opclasses=["varchar_pattern_ops"]
                    )
                ],
                "indexes": [
                    models.Index(fields=["borrower_uuid"], name="application_by_borrower"),
                    *(
                        models.Index(
                            fields=[*fields, "archived_at"],
                            condition=Q(archived_at__isnull=True),
                            name=f"application_by_{name}",
                        )
                        for name, fields in ORDERS.items()
                    ),
                ],
            },
        ),
    ]
