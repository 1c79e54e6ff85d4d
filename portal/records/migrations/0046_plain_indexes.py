"""Fields of accounts by their real names, whether one is closed, and one index for each filter and default order."""

from typing import Any

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models import Q
from django.db.models.functions import Lower

from portal.core.database import analyze
from servicing.figures import is_closed_status

HAS_TEXT = ~Q(search_text="")
REMOVED = {
    "account": (
        *("accounts_due_since_copy", "accounts_past_due"),
        *(
            f"{kinds}_{name}"
            for kinds in ("loans", "lines")
            for name in (
                *("by_text", "by_updated_at", "by_created_at", "by_amount", "by_key_date", "by_checked_at"),
                *("by_past_due", "by_past_due_rank", "by_figures_good_through", "by_due_amount"),
                *("flagged", "late", "on_time", "to_check"),
            )
        ),
        *("loans_by_state", "loans_by_status", "loans_in_status", "loans_by_rate", "loans_by_category"),
        *("loans_by_oldest_unpaid_due", "lines_by_days_past_due", "lines_by_aging"),
    ),
    "application": tuple(
        f"application_by_{name}"
        for name in (
            *("updated_at", "created_at", "submitted_at", "amount", "product", "decision"),
            *("decision_time", "text"),
        )
    ),
    "borrower": tuple(
        f"borrower_by_{name}"
        for name in (
            *("updated_at", "created_at", "legal_form", "state", "decision", "city", "past_due"),
            *("past_due_rank", "checked_at", "created_by", "is_past_due", "name", "text"),
        )
    ),
    "keyperson": tuple(f"people_by_{name}" for name in ("updated_at", "created_at", "state", "text")),
    "repayment": ("repayments_by_status", "repayments_by_updated_at"),
}
ADDED = {
    "account": [
        models.Index(fields=["kind", "past_due_rank", "id"], name="account_by_past_due_rank"),
        models.Index(fields=["kind", "-created_at", "-id"], name="account_by_created_at"),
        models.Index(fields=["kind", "-updated_at", "-id"], name="account_by_updated_at"),
        models.Index(fields=["kind", "next_due_on"], name="account_by_next_due_on"),
        models.Index(fields=["kind", "status"], name="account_by_status"),
        models.Index(fields=["kind", "product"], name="account_by_product"),
        models.Index(fields=["kind", "checked_at"], name="account_by_checked_at"),
        models.Index(fields=["kind", "amount"], name="account_by_amount"),
        models.Index(fields=["kind", "past_due"], name="account_by_past_due"),
        models.Index(fields=["kind", "due_amount"], name="account_by_due_amount"),
        models.Index(fields=["figures_good_through"], name="account_by_good_through"),
        *(
            models.Index(fields=[name], condition=Q(**{f"{name}__isnull": False}), name=f"account_by_{name}")
            for name in ("oldest_unpaid_due", "days_past_due", "due_since_on")
        ),
        models.Index(
            fields=["past_due_rank", "id"], condition=Q(past_due_rank__isnull=False), name="account_past_due"
        ),
        models.Index(fields=["kind", "id"], condition=Q(needs_check=True), name="account_to_check"),
    ],
    "application": [
        models.Index(fields=["submitted_at", "id"], name="application_by_submitted_at"),
        models.Index(fields=["-created_at", "-id"], name="application_by_created_at"),
        models.Index(fields=["product"], name="application_by_product"),
        models.Index(fields=["decision", "submitted_at", "id"], name="application_by_decision"),
    ],
    "borrower": [
        models.Index(fields=["past_due_rank", "id"], name="borrower_by_past_due_rank"),
        models.Index(Lower("name"), "id", name="borrower_by_name"),
        models.Index(fields=["-updated_at", "-id"], name="borrower_by_updated_at"),
        models.Index(fields=["-created_at", "-id"], name="borrower_by_created_at"),
        *(
            models.Index(fields=[name], name=f"borrower_by_{name}")
            for name in ("past_due", "state", "legal_form", "decision", "checked_at", "created_by")
        ),
    ],
    "keyperson": [models.Index(fields=["-updated_at", "-id"], name="people_by_updated_at")],
}
TEXTS = {
    "account": models.Index(
        fields=["kind", "-id", "search_text", "archived_at"], condition=HAS_TEXT, name="account_by_text"
    ),
    "application": models.Index(
        fields=["-id", "search_text", "archived_at"], condition=HAS_TEXT, name="application_by_text"
    ),
    "borrower": models.Index(
        fields=["-id", "search_text", "archived_at"], condition=HAS_TEXT, name="borrower_by_text"
    ),
    "keyperson": models.Index(
        fields=["-id", "search_text", "archived_at"], condition=HAS_TEXT, name="people_by_text"
    ),
}


def fill_is_closed(apps: Any, schema_editor: Any) -> None:
    accounts = apps.get_model("registry", "Account").objects.using(schema_editor.connection.alias)
    statuses = accounts.filter(kind="loan").order_by().values_list("status", flat=True).distinct()
    closed = [one for one in statuses if is_closed_status(one, settings.CLOSED_STATUSES)]
    accounts.filter(kind="loan", status__in=closed).update(is_closed=True)


def update_statistics(apps: Any, schema_editor: Any) -> None:
    """SQLite would plan with those of indexes that are gone."""
    if apps.get_model("registry", "Account").objects.using(schema_editor.connection.alias).exists():
        analyze()


class Migration(migrations.Migration):
    dependencies = [("registry", "0045_accounts")]

    operations = [
        *(migrations.RemoveIndex(model, name) for model, names in REMOVED.items() for name in names),
        migrations.RemoveConstraint("account", "one_record_per_answer"),
        migrations.RenameField("account", "flagged", "is_past_due"),
        migrations.RenameField("account", "key_date", "next_due_on"),
        migrations.RenameField("account", "category", "product"),
        # Of a foreign key, Django would copy the whole table on SQLite.
        migrations.SeparateDatabaseAndState(
            [
                migrations.RunSQL(
                    "ALTER TABLE registry_record RENAME COLUMN said_id TO answer_id",
                    "ALTER TABLE registry_record RENAME COLUMN answer_id TO said_id",
                )
            ],
            [migrations.RenameField("account", "said", "answer")],
        ),
        migrations.AlterField(
            "account",
            "answer",
            models.ForeignKey(
                db_index=False,
                help_text="What was said about it; null if nobody ever asked or answered. Its text is long.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="registry.answer",
            ),
        ),
        migrations.AlterField("account", "is_past_due", models.BooleanField(default=False)),
        migrations.AlterField("account", "next_due_on", models.DateField(null=True)),
        migrations.AlterField("account", "product", models.CharField(blank=True, max_length=40)),
        migrations.AddField(
            "account",
            "is_closed",
            models.BooleanField(
                db_default=False,
                default=False,
                help_text="Whether that status is one of ``CLOSED_STATUSES``.",
            ),
        ),
        migrations.RunPython(fill_is_closed, migrations.RunPython.noop),
    ]
