"""Indexes of what is past due by the next due date: few rows, which SQLite otherwise looks for along all accounts."""

from importlib import import_module

from django.db import migrations, models
from django.db.models import Q

AddIndexOnline = import_module("portal.records.migrations.0003_indexes_of_figures").AddIndexOnline
INDEXES = [
    models.Index(
        fields=["kind", "key_date", "id", "flagged", "archived_at"],
        condition=Q(kind=kind) & Q(flagged__in=[True]) & Q(archived_at__isnull=True),
        name=f"{kind}s_late",
    )
    for kind in ("loan", "line")
]


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("registry", "0006_index_of_past_due")]

    operations = [AddIndexOnline("record", index) for index in INDEXES]
