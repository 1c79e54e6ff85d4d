"""Indexes for the products of loans, for the aging of lines, and for payments due of accounts that aren't past due."""

from importlib import import_module

from django.db import migrations, models
from django.db.models import Q

AddIndexOnline = import_module("portal.records.migrations.0003_indexes_of_figures").AddIndexOnline
LISTED = Q(archived_at__isnull=True)
INDEXES = [
    models.Index(
        fields=["kind", "category", "id"], condition=Q(kind="loan") & LISTED, name="loans_by_category"
    ),
    models.Index(
        fields=["kind", "days_past_due", "past_due", "id", "archived_at"],
        condition=Q(kind="line") & LISTED,
        name="lines_by_aging",
    ),
    *(
        models.Index(
            fields=["kind", "key_date", "id", "flagged", "archived_at"],
            condition=Q(kind=kind) & Q(flagged=False) & LISTED,
            name=f"{kind}s_on_time",
        )
        for kind in ("loan", "line")
    ),
]


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("registry", "0003_indexes_of_figures")]

    operations = [AddIndexOnline("record", index) for index in INDEXES]
