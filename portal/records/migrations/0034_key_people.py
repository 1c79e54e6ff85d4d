"""The table of key people, without the index of their texts, which the move would only slow down."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q

LISTED = Q(archived_at__isnull=True)


class Migration(migrations.Migration):
    dependencies = [("registry", "0033_indexes_of_search")]

    operations = [
        migrations.CreateModel(
            name="KeyPerson",
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
                    "name",
                    models.CharField(
                        blank=True, help_text="As staff, a file or the service wrote it last.", max_length=300
                    ),
                ),
                ("title", models.CharField(blank=True, max_length=40)),
                ("state", models.CharField(blank=True, max_length=10)),
                ("city", models.CharField(blank=True, max_length=100)),
                ("phone", models.CharField(blank=True, max_length=20)),
                ("email", models.CharField(blank=True, max_length=254)),
                (
                    "folded_name",
                    models.CharField(
                        blank=True, help_text="The letters and digits of the name, folded.", max_length=300
                    ),
                ),
                ("search_text", models.TextField(blank=True)),
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
                        fields=("uuid",), name="one_key_person_per_uuid", opclasses=["varchar_pattern_ops"]
                    )
                ],
                "indexes": [
                    models.Index(fields=["borrower_uuid"], name="people_by_borrower"),
                    models.Index(fields=["folded_name"], name="people_by_folded_name"),
                    models.Index(
                        fields=["-updated_at", "-id", "archived_at"],
                        condition=LISTED,
                        name="people_by_updated_at",
                    ),
                    models.Index(
                        fields=["-created_at", "-id", "archived_at"],
                        condition=LISTED,
                        name="people_by_created_at",
                    ),
                    models.Index(
                        fields=["state", "-updated_at", "-id", "archived_at"],
                        condition=LISTED,
                        name="people_by_state",
                    ),
                ],
            },
        ),
    ]
