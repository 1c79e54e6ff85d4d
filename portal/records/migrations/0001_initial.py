"""Records, their saved answers, and the indexes that lists are read by."""

from typing import Any

import django.db.models.deletion
import django.db.models.functions.text
from django.db import migrations, models

import portal.records.models

# Columns that may be empty, by index and kind: a list ends with what is empty either way round. PostgreSQL reads an
# index backwards with the empty first, so the falling order has an index of its own; SQLite has the empty last anyway.
FALLING = [
    ("records_by_amount", "amount", ""),
    ("records_by_key_date", "key_date", ""),
    ("records_by_checked_at", "checked_at", ""),
    ("loans_by_rate", "rate", "loan"),
    ("loans_by_past_due", "past_due", "loan"),
    ("loans_by_past_due_rank", "past_due_rank", "loan"),
    ("lines_by_past_due", "past_due", "line"),
    ("lines_by_past_due_rank", "past_due_rank", "line"),
    ("borrowers_by_past_due", "past_due", "borrower"),
    ("borrowers_by_past_due_rank", "past_due_rank", "borrower"),
    ("repayments_by_key_date", "key_date", "repayment"),
]
# These are read alone, without the table.
INCLUDED = {"repayments_by_key_date": " INCLUDE (status, category, subtype, flagged, amount)"}


def drop_constant_kind_column(schema_editor: Any) -> None:
    """Remove the kind from the columns of PostgreSQL's indexes of one kind.

    PostgreSQL doesn't use such a column, and would read the whole index.
    """
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(
            "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'registry_record'"
            " AND indexdef LIKE '%(kind, %' AND indexdef LIKE '%(kind)::text = %'"
        )
        for name, statement in cursor.fetchall():
            cursor.execute(f"DROP INDEX {name}")
            cursor.execute(statement.replace("(kind, ", "(", 1))


def shape_postgres_indexes(apps: Any, schema_editor: Any) -> None:
    """Give PostgreSQL's indexes what Django's have no words for."""
    if schema_editor.connection.vendor != "postgresql":
        return
    # Django leaves the indexes of a new table to the end of the migration.
    for statement in schema_editor.deferred_sql:
        schema_editor.execute(statement)
    schema_editor.deferred_sql.clear()
    for name, column, kind in FALLING:
        condition = f"kind = '{kind}' AND " if kind else ""
        schema_editor.execute(
            f"CREATE INDEX {name}_falling ON registry_record (kind, {column} DESC NULLS LAST, id DESC)"
            f"{INCLUDED.get(name, '')} WHERE {condition}archived_at IS NULL"
        )
    schema_editor.execute("DROP INDEX borrowers_by_label")
    schema_editor.execute(
        "CREATE INDEX borrowers_by_label ON registry_record (kind, lower(label), id) INCLUDE (label)"
        " WHERE kind = 'borrower' AND archived_at IS NULL"
    )
    drop_constant_kind_column(schema_editor)


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Record",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("kind", models.CharField(choices=portal.records.models.kind_choices, max_length=16)),
                ("uuid", models.CharField(max_length=64)),
                ("borrower_uuid", models.CharField(blank=True, max_length=64)),
                (
                    "owner_confirmed",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="Somebody chose the borrower, whatever the answer says.",
                    ),
                ),
                (
                    "parent_uuid",
                    models.CharField(
                        blank=True, help_text="The loan or line a repayment belongs to.", max_length=64
                    ),
                ),
                ("label", models.CharField(blank=True, max_length=300)),
                ("answer_at", models.DateTimeField(null=True)),
                (
                    "source",
                    models.CharField(
                        choices=[
                            ("service", "From the lending service"),
                            ("file", "From file"),
                            ("staff", "Added by staff"),
                        ],
                        default="staff",
                        max_length=10,
                    ),
                ),
                (
                    "checked_at",
                    models.DateTimeField(help_text="When the service last answered for it.", null=True),
                ),
                (
                    "asked_at",
                    models.DateTimeField(help_text="When the service was last asked for it.", null=True),
                ),
                ("failed_at", models.DateTimeField(help_text="When asking failed last.", null=True)),
                ("failing_since", models.DateTimeField(help_text="Since when asking has failed.", null=True)),
                (
                    "failure",
                    models.TextField(blank=True, help_text="Why it failed last, in words for staff."),
                ),
                (
                    "category",
                    models.CharField(
                        blank=True,
                        help_text="Product of an account, type of a borrower, title of a key person.",
                        max_length=40,
                    ),
                ),
                ("status", models.CharField(blank=True, max_length=40)),
                (
                    "subtype",
                    models.CharField(
                        blank=True,
                        help_text="Legal form of a borrower, payment type of a repayment.",
                        max_length=40,
                    ),
                ),
                ("state", models.CharField(blank=True, max_length=10)),
                ("city", models.CharField(blank=True, max_length=100)),
                ("phone", models.CharField(blank=True, max_length=20)),
                ("email", models.CharField(blank=True, max_length=254)),
                ("amount", models.DecimalField(decimal_places=4, max_digits=20, null=True)),
                (
                    "past_due",
                    models.DecimalField(
                        decimal_places=4, help_text="Null: not known.", max_digits=20, null=True
                    ),
                ),
                (
                    "key_date",
                    models.DateField(
                        help_text="Next due date of a loan or line, effective date of a repayment.", null=True
                    ),
                ),
                ("rate", models.DecimalField(decimal_places=4, max_digits=20, null=True)),
                (
                    "flagged",
                    models.BooleanField(
                        default=False, help_text="An account that is past due, a failed repayment."
                    ),
                ),
                (
                    "needs_check",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="Figures in the answer of an account contradict each other.",
                    ),
                ),
                (
                    "figures_good_through",
                    models.DateField(
                        help_text="The last business date on which they hold; null if they were never calculated.",
                        null=True,
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
                (
                    "oldest_unpaid_due",
                    models.DateField(help_text="Days past due of a loan are counted from it.", null=True),
                ),
                (
                    "days_past_due",
                    models.IntegerField(help_text="Of a line, as reported in its answer.", null=True),
                ),
                ("due_amount", models.DecimalField(decimal_places=4, max_digits=20, null=True)),
                ("remaining", models.DecimalField(decimal_places=4, max_digits=20, null=True)),
                ("principal", models.DecimalField(decimal_places=4, max_digits=20, null=True)),
                ("available", models.DecimalField(decimal_places=4, max_digits=20, null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("created_by", models.CharField(blank=True, max_length=300)),
                ("archived_at", models.DateTimeField(null=True)),
                ("search_text", models.TextField(blank=True)),
                ("answer", models.TextField(blank=True)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["borrower_uuid", "kind"], name="registry_re_borrowe_e60b2a_idx"),
                    models.Index(fields=["parent_uuid", "kind"], name="registry_re_parent__4fe39a_idx"),
                    models.Index(
                        condition=models.Q(("archived_at__isnull", True)),
                        fields=["kind", "checked_at", "id", "category"],
                        name="records_by_checked_at",
                    ),
                    models.Index(
                        condition=models.Q(("archived_at__isnull", True)),
                        fields=["kind", "status", "id"],
                        name="records_in_status",
                    ),
                    models.Index(
                        condition=models.Q(("archived_at__isnull", True)),
                        fields=["kind", "-updated_at", "-id", "created_at"],
                        name="records_by_updated_at",
                    ),
                    models.Index(
                        condition=models.Q(("archived_at__isnull", True)),
                        fields=["kind", "-created_at", "-id"],
                        name="records_by_created_at",
                    ),
                    models.Index(
                        condition=models.Q(("archived_at__isnull", True)),
                        fields=["kind", "amount", "id"],
                        name="records_by_amount",
                    ),
                    models.Index(
                        condition=models.Q(("archived_at__isnull", True)),
                        fields=["kind", "key_date", "id"],
                        name="records_by_key_date",
                    ),
                    models.Index(
                        condition=models.Q(("archived_at__isnull", True)),
                        fields=["kind", "subtype", "-updated_at", "-id", "state", "status", "flagged"],
                        name="records_by_subtype",
                    ),
                    models.Index(
                        condition=models.Q(("archived_at__isnull", True)),
                        fields=["kind", "state", "-updated_at", "-id", "subtype", "status", "flagged"],
                        name="records_by_state",
                    ),
                    models.Index(
                        condition=models.Q(("archived_at__isnull", True)),
                        fields=["kind", "status", "-updated_at", "-id", "subtype", "state", "flagged"],
                        name="records_by_status",
                    ),
                    models.Index(
                        condition=models.Q(("archived_at__isnull", True)),
                        fields=["kind", "flagged", "-updated_at", "-id", "subtype", "state", "status"],
                        name="records_by_flagged",
                    ),
                    models.Index(
                        models.F("kind"),
                        django.db.models.functions.text.Lower("label"),
                        models.F("id"),
                        condition=models.Q(("kind", "borrower"), ("archived_at__isnull", True)),
                        name="borrowers_by_label",
                    ),
                    models.Index(
                        condition=models.Q(("kind", "borrower"), ("archived_at__isnull", True)),
                        fields=["kind", "city", "id"],
                        name="borrowers_by_city",
                    ),
                    models.Index(
                        condition=models.Q(("kind", "borrower"), ("archived_at__isnull", True)),
                        fields=["kind", "past_due", "id"],
                        name="borrowers_by_past_due",
                    ),
                    models.Index(
                        condition=models.Q(("kind", "borrower"), ("archived_at__isnull", True)),
                        fields=["kind", "past_due_rank", "id"],
                        name="borrowers_by_past_due_rank",
                    ),
                    models.Index(
                        condition=models.Q(("kind", "borrower"), ("archived_at__isnull", True)),
                        fields=["kind", "checked_at", "-updated_at", "-id"],
                        name="borrowers_by_checked_at",
                    ),
                    models.Index(
                        condition=models.Q(("kind", "borrower"), ("archived_at__isnull", True)),
                        fields=["kind", "created_by", "-updated_at", "-id"],
                        name="borrowers_by_created_by",
                    ),
                    models.Index(
                        condition=models.Q(("kind", "application"), ("archived_at__isnull", True)),
                        fields=["kind", "category", "id"],
                        name="applications_by_category",
                    ),
                    models.Index(
                        condition=models.Q(("kind", "loan"), ("archived_at__isnull", True)),
                        fields=["kind", "rate", "id"],
                        name="loans_by_rate",
                    ),
                    models.Index(
                        condition=models.Q(("kind", "loan"), ("archived_at__isnull", True)),
                        fields=["kind", "needs_check", "-updated_at", "-id"],
                        name="loans_by_needs_check",
                    ),
                    models.Index(
                        condition=models.Q(("kind", "loan"), ("archived_at__isnull", True)),
                        fields=["kind", "past_due", "id"],
                        name="loans_by_past_due",
                    ),
                    models.Index(
                        condition=models.Q(("kind", "loan"), ("archived_at__isnull", True)),
                        fields=["kind", "past_due_rank", "id"],
                        name="loans_by_past_due_rank",
                    ),
                    models.Index(
                        condition=models.Q(("kind", "loan"), ("archived_at__isnull", True)),
                        fields=["kind", "figures_good_through", "id"],
                        name="loans_by_figures_good_through",
                    ),
                    models.Index(
                        condition=models.Q(("kind", "line"), ("archived_at__isnull", True)),
                        fields=["kind", "needs_check", "-updated_at", "-id"],
                        name="lines_by_needs_check",
                    ),
                    models.Index(
                        condition=models.Q(("kind", "line"), ("archived_at__isnull", True)),
                        fields=["kind", "past_due", "id"],
                        name="lines_by_past_due",
                    ),
                    models.Index(
                        condition=models.Q(("kind", "line"), ("archived_at__isnull", True)),
                        fields=["kind", "past_due_rank", "id"],
                        name="lines_by_past_due_rank",
                    ),
                    models.Index(
                        condition=models.Q(("kind", "line"), ("archived_at__isnull", True)),
                        fields=["kind", "figures_good_through", "id"],
                        name="lines_by_figures_good_through",
                    ),
                    models.Index(
                        condition=models.Q(("kind", "repayment"), ("archived_at__isnull", True)),
                        fields=["kind", "category", "id"],
                        name="repayments_by_category",
                    ),
                    models.Index(
                        condition=models.Q(("kind", "repayment"), ("archived_at__isnull", True)),
                        fields=[
                            "kind",
                            "key_date",
                            "id",
                            "status",
                            "category",
                            "subtype",
                            "flagged",
                            "amount",
                            "archived_at",
                        ],
                        name="repayments_by_key_date",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("kind", "uuid"),
                        name="one_record_per_uuid",
                        opclasses=["varchar_ops", "varchar_pattern_ops"],
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Snapshot",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("at", models.DateTimeField()),
                (
                    "source",
                    models.CharField(
                        choices=[
                            ("service", "From the lending service"),
                            ("file", "From file"),
                            ("staff", "Added by staff"),
                        ],
                        max_length=10,
                    ),
                ),
                ("digest", models.CharField(max_length=64)),
                ("answer", models.TextField()),
                (
                    "record",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="snapshots",
                        to="registry.record",
                    ),
                ),
            ],
            options={
                "ordering": ["-at", "-id"],
                "indexes": [models.Index(fields=["record", "-at"], name="registry_sn_record__279ac3_idx")],
            },
        ),
        migrations.RunPython(shape_postgres_indexes, migrations.RunPython.noop),
    ]
