"""Removes the records of lists of repayments, whose answers stay, in batches: a run that was stopped goes on.

Before that each answer gets its business date, the only time of a list that its record had alone.
"""

from typing import Any

from django.db import migrations, transaction
from django.db.models import OuterRef, Subquery

BATCH_SIZE = 500
LISTS = ["loan_repayments", "line_repayments"]


def move_days(apps: Any, schema_editor: Any) -> None:
    using = schema_editor.connection.alias
    answers, records = (
        apps.get_model("registry", name).objects.using(using) for name in ("Answer", "Record")
    )
    day = records.filter(said=OuterRef("pk")).values("answer_day")
    waiting, last = records.filter(answer_day__isnull=False, said__last_on=None, said__isnull=False), 0
    while batch := list(waiting.filter(pk__gt=last).order_by("pk").values_list("pk", "said")[:BATCH_SIZE]):
        last = batch[-1][0]
        answers.filter(pk__in=[said for _, said in batch]).update(last_on=Subquery(day))


def remove_records(apps: Any, schema_editor: Any) -> None:
    using = schema_editor.connection.alias
    lists = apps.get_model("registry", "Record").objects.using(using).filter(kind__in=LISTS)
    while keys := list(lists.values_list("pk", flat=True)[:BATCH_SIZE]):
        with transaction.atomic(using):
            lists.filter(pk__in=keys).delete()


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("registry", "0024_days_of_answers")]

    operations = [
        migrations.RunPython(move_days, migrations.RunPython.noop, elidable=True),
        migrations.RunPython(remove_records, migrations.RunPython.noop, elidable=True),
    ]
