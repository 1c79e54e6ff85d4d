"""The table of borrowers, without the index of their texts, which the move would only slow down."""

import django.db.models.deletion
import django.db.models.functions.text
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("registry", "0036_indexes_of_key_people")]

    operations = [
        migrations.CreateModel(
            name="Borrower",
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
                (
                    "name",
                    models.CharField(
                        blank=True, help_text="As staff, a file or the service wrote it last.", max_length=300
                    ),
                ),
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
                ("type", models.CharField(blank=True, max_length=40)),
                ("legal_form", models.CharField(blank=True, max_length=40)),
                (
                    "past_due",
                    models.DecimalField(
                        decimal_places=4, help_text="Null: not known.", max_digits=20, null=True
                    ),
                ),
                (
                    "past_due_rank",
                    models.DecimalField(
                        decimal_places=4,
                        help_text="Orders what is past due, not known above all.",
                        max_digits=20,
                        null=True,
                    ),
                ),
                ("is_past_due", models.BooleanField(default=False)),
                ("oldest_unpaid_on", models.DateField(help_text="Of its loans.", null=True)),
                (
                    "days_past_due",
                    models.IntegerField(help_text="The most of its lines, as reported.", null=True),
                ),
                (
                    "decision",
                    models.CharField(
                        blank=True, help_text="On its latest application, or that one is open.", max_length=40
                    ),
                ),
            ],
        ),
        migrations.AddField(
            model_name="borrower",
            name="answer",
            field=models.OneToOneField(
                help_text="What was said about it; null if nobody ever asked or answered.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="registry.answer",
            ),
        ),
        migrations.AddIndex(
            model_name="borrower",
            index=models.Index(fields=["folded_name"], name="borrower_by_folded_name"),
        ),
        migrations.AddIndex(
            model_name="borrower",
            index=models.Index(
                condition=models.Q(("archived_at__isnull", True)),
                fields=["-updated_at", "-id", "created_at", "archived_at"],
                name="borrower_by_updated_at",
            ),
        ),
        migrations.AddIndex(
            model_name="borrower",
            index=models.Index(
                condition=models.Q(("archived_at__isnull", True)),
                fields=["-created_at", "-id", "archived_at"],
                name="borrower_by_created_at",
            ),
        ),
        migrations.AddIndex(
            model_name="borrower",
            index=models.Index(
                condition=models.Q(("archived_at__isnull", True)),
                fields=[
                    "legal_form",
                    "-updated_at",
                    "-id",
                    "state",
                    "decision",
                    "is_past_due",
                    "archived_at",
                ],
                name="borrower_by_legal_form",
            ),
        ),
        migrations.AddIndex(
            model_name="borrower",
            index=models.Index(
                condition=models.Q(("archived_at__isnull", True)),
                fields=[
                    "state",
                    "-updated_at",
                    "-id",
                    "legal_form",
                    "decision",
                    "is_past_due",
                    "archived_at",
                ],
                name="borrower_by_state",
            ),
        ),
        migrations.AddIndex(
            model_name="borrower",
            index=models.Index(
                condition=models.Q(("archived_at__isnull", True)),
                fields=[
                    "decision",
                    "-updated_at",
                    "-id",
                    "legal_form",
                    "state",
                    "is_past_due",
                    "archived_at",
                ],
                name="borrower_by_decision",
            ),
        ),
        migrations.AddIndex(
            model_name="borrower",
            index=models.Index(
                condition=models.Q(("archived_at__isnull", True)),
                fields=["city", "id", "archived_at"],
                name="borrower_by_city",
            ),
        ),
        migrations.AddIndex(
            model_name="borrower",
            index=models.Index(
                condition=models.Q(("archived_at__isnull", True)),
                fields=["past_due", "id", "archived_at"],
                name="borrower_by_past_due",
            ),
        ),
        migrations.AddIndex(
            model_name="borrower",
            index=models.Index(
                condition=models.Q(("archived_at__isnull", True)),
                fields=["past_due_rank", "id", "archived_at"],
                name="borrower_by_past_due_rank",
            ),
        ),
        migrations.AddIndex(
            model_name="borrower",
            index=models.Index(
                condition=models.Q(("archived_at__isnull", True)),
                fields=["checked_at", "-updated_at", "-id", "archived_at"],
                name="borrower_by_checked_at",
            ),
        ),
        migrations.AddIndex(
            model_name="borrower",
            index=models.Index(
                condition=models.Q(("archived_at__isnull", True)),
                fields=["created_by", "-updated_at", "-id", "archived_at"],
                name="borrower_by_created_by",
            ),
        ),
        migrations.AddIndex(
            model_name="borrower",
            index=models.Index(
                condition=models.Q(("is_past_due__in", [True]), ("archived_at__isnull", True)),
                fields=[
                    "-updated_at",
                    "-id",
                    "is_past_due",
                    "legal_form",
                    "state",
                    "decision",
                    "archived_at",
                ],
                name="borrower_by_is_past_due",
            ),
        ),
        migrations.AddIndex(
            model_name="borrower",
            index=models.Index(
                django.db.models.functions.text.Lower("name"),
                models.F("id"),
                condition=models.Q(("archived_at__isnull", True)),
                name="borrower_by_name",
            ),
        ),
        migrations.AddConstraint(
            model_name="borrower",
            constraint=models.UniqueConstraint(
                fields=("uuid",), name="one_borrower_per_uuid", opclasses=["varchar_pattern_ops"]
            ),
        ),
    ]
