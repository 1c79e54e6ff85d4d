"""Tables of repayments and of their changes of status. The next migrations fill them, and add their indexes."""

import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("registry", "0027_search_in_columns")]

    operations = [
        migrations.CreateModel(
            name="Repayment",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("uuid", models.CharField(max_length=64)),
                (
                    "account",
                    models.ForeignKey(
                        help_text="The loan or line; null if it isn't on file.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="repayments",
                        to="registry.record",
                    ),
                ),
                ("borrower_uuid", models.CharField(blank=True, max_length=64)),
                ("product", models.CharField(blank=True, max_length=40)),
                ("payment_type", models.CharField(blank=True, max_length=40)),
                ("status", models.CharField(blank=True, max_length=40)),
                ("amount", models.DecimalField(decimal_places=4, max_digits=20, null=True)),
                ("effective_on", models.DateField(null=True)),
                ("has_failed", models.BooleanField(default=False)),
                (
                    "ach_id",
                    models.CharField(blank=True, help_text="Folded, as it is searched for.", max_length=64),
                ),
                ("ach_batch_id", models.CharField(blank=True, help_text="The same.", max_length=64)),
                ("bank_account", models.CharField(blank=True, help_text="The borrower's.", max_length=64)),
                (
                    "code",
                    models.CharField(
                        blank=True, help_text="The return code in the error description.", max_length=8
                    ),
                ),
                ("first_seen_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "last_listed_at",
                    models.DateTimeField(help_text="When a list contained it last.", null=True),
                ),
                (
                    "last_listed_on",
                    models.DateField(help_text="The business date of that; null if not known.", null=True),
                ),
                (
                    "returned_at",
                    models.DateTimeField(
                        help_text="When it was first seen as returned; null if it always was, or never.",
                        null=True,
                    ),
                ),
                ("updated_at", models.DateTimeField()),
                (
                    "body",
                    models.TextField(
                        blank=True,
                        help_text="Its entry of that list as received, in canonical JSON.",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("uuid",),
                        name="one_row_per_repayment",
                        opclasses=["varchar_pattern_ops"],
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="RepaymentStatus",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("at", models.DateTimeField(help_text="When it was first seen with the new status.")),
                ("old", models.CharField(blank=True, max_length=40)),
                (
                    "old_last_at",
                    models.DateTimeField(help_text="When it was last seen with the old status.", null=True),
                ),
                (
                    "old_reason",
                    models.TextField(
                        blank=True, help_text="What the service said about the old status then."
                    ),
                ),
                ("new", models.CharField(blank=True, max_length=40)),
                (
                    "repayment",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="statuses",
                        to="registry.repayment",
                    ),
                ),
            ],
            options={"ordering": ["at", "id"]},
        ),
    ]
