"""The index of the texts of borrowers, and no more columns and indexes of their records."""

from importlib import import_module

from django.db import migrations, models
from django.db.models import Q

search = import_module("portal.registry.migrations.0029_indexes_of_search")
people = import_module("portal.registry.migrations.0032_indexes_of_key_people")
TEXTS = models.Index(
    fields=["-id", "search_text", "archived_at"],
    condition=~Q(search_text="") & Q(archived_at__isnull=True),
    name="borrower_by_text",
)


class Migration(migrations.Migration):
    dependencies = [("registry", "0034_move_borrowers")]

    operations = [
        people.AddTextIndex("borrower", TEXTS),
        migrations.RemoveIndex(
            model_name="record",
            name="borrowers_by_label",
        ),
        migrations.RemoveIndex(
            model_name="record",
            name="borrowers_by_city",
        ),
        migrations.RemoveIndex(
            model_name="record",
            name="borrowers_by_past_due",
        ),
        migrations.RemoveIndex(
            model_name="record",
            name="borrowers_by_past_due_rank",
        ),
        migrations.RemoveIndex(
            model_name="record",
            name="borrowers_by_checked_at",
        ),
        migrations.RemoveIndex(
            model_name="record",
            name="borrowers_by_created_by",
        ),
        migrations.RemoveIndex(
            model_name="record",
            name="accounts_past_due",
        ),
        migrations.RemoveIndex(
            model_name="record",
            name="borrowers_by_updated_at",
        ),
        migrations.RemoveIndex(
            model_name="record",
            name="borrowers_by_created_at",
        ),
        migrations.RemoveIndex(
            model_name="record",
            name="borrowers_by_subtype",
        ),
        migrations.RemoveIndex(
            model_name="record",
            name="borrowers_by_state",
        ),
        migrations.RemoveIndex(
            model_name="record",
            name="borrowers_by_status",
        ),
        migrations.RemoveIndex(
            model_name="record",
            name="borrowers_flagged",
        ),
        migrations.RemoveIndex(
            model_name="record",
            name="borrowers_by_text",
        ),
        migrations.RemoveIndex(
            model_name="record",
            name="people_by_name",
        ),
        migrations.RemoveField(
            model_name="record",
            name="city",
        ),
        migrations.RemoveField(
            model_name="record",
            name="email",
        ),
        migrations.RemoveField(
            model_name="record",
            name="name_key",
        ),
        migrations.RemoveField(
            model_name="record",
            name="phone",
        ),
        migrations.AlterField(
            model_name="record",
            name="category",
            field=models.CharField(blank=True, help_text="Product.", max_length=40),
        ),
        migrations.AlterField(
            model_name="record",
            name="subtype",
            field=models.CharField(blank=True, help_text="Payment type of a repayment.", max_length=40),
        ),
        migrations.AddIndex(
            model_name="record",
            index=models.Index(
                condition=models.Q(("past_due_rank__isnull", False), ("archived_at__isnull", True)),
                fields=[
                    "past_due_rank",
                    "id",
                    "kind",
                    "past_due",
                    "oldest_unpaid_due",
                    "days_past_due",
                    "archived_at",
                ],
                name="accounts_past_due",
            ),
        ),
        migrations.RunPython(search.update_statistics, migrations.RunPython.noop, elidable=True),
    ]
