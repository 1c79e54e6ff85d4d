"""The index of payments due has the status too, because closed accounts don't count: it read a row for each payment."""

from importlib import import_module

from django.db import migrations, models
from django.db.models import Q

ReplaceIndexes = import_module("portal.records.migrations.0008_indexes_of_kinds").ReplaceIndexes
FIELDS = ["kind", "key_date", "id", "status", "flagged", "archived_at"]
INDEXES = [
    models.Index(
        fields=FIELDS,
        condition=Q(kind=kind) & Q(flagged=False) & Q(archived_at__isnull=True),
        name=f"{kind}s_on_time",
    )
    for kind in ("loan", "line")
]


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("registry", "0010_payments_that_have_not_failed")]

    operations = [ReplaceIndexes(INDEXES, [])]
