"""Moves answers from the records to their own table, in batches: each is whole, and the next run begins after it."""

from typing import Any

from django.db import migrations, transaction
from django.db.models import Exists, OuterRef, Q, Subquery

BATCH_SIZE = 500
# Each time that an answer has of its own. The table of answers calls the first two otherwise.
TIMES = {"answer_first_at": "first_at", "answer_at": "last_at"} | {
    name: name for name in ("asked_at", "failed_at", "failing_since")
}


def move_answers(apps: Any, schema_editor: Any) -> None:
    using = schema_editor.connection.alias
    Answer, Record, Snapshot = (apps.get_model("registry", name) for name in ("Answer", "Record", "Snapshot"))
    answers, records, snapshots = (model.objects.using(using) for model in (Answer, Record, Snapshot))
    earlier = snapshots.filter(record=OuterRef("pk"))
    is_asked = Q(asked_at__isnull=False) | Q(failed_at__isnull=False) | Q(failing_since__isnull=False)
    waiting = records.filter(
        ~Q(answer="") | Q(answer_at__isnull=False) | is_asked | Exists(earlier), said=None
    )
    said = answers.filter(kind=OuterRef("kind"), uuid=OuterRef("uuid")).values("pk")
    needed, last = ("pk", "kind", "uuid", "answer", "source", "failure", *TIMES), 0
    while batch := list(waiting.filter(pk__gt=last).order_by("pk").values(*needed)[:BATCH_SIZE]):
        last = batch[-1]["pk"]
        with transaction.atomic(using):
            answers.bulk_create(
                Answer(
                    kind=row["kind"],
                    uuid=row["uuid"],
                    body=row["answer"],
                    source=row["source"] if row["answer"] else "",
                    failure=row["failure"],
                    **{new: row[old] for old, new in TIMES.items()},
                )
                for row in batch
            )
            records.filter(pk__in=[row["pk"] for row in batch]).update(said=Subquery(said))


def move_snapshots(apps: Any, schema_editor: Any) -> None:
    using = schema_editor.connection.alias
    records, snapshots = (
        apps.get_model("registry", name).objects.using(using) for name in ("Record", "Snapshot")
    )
    said, waiting, last = (
        records.filter(pk=OuterRef("record")).values("said"),
        snapshots.filter(answer=None),
        0,
    )
    while keys := list(waiting.filter(pk__gt=last).order_by("pk").values_list("pk", flat=True)[:BATCH_SIZE]):
        last = keys[-1]
        snapshots.filter(pk__in=keys).update(answer=Subquery(said))


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("registry", "0019_answers")]

    operations = [
        migrations.RunPython(move_answers, migrations.RunPython.noop, elidable=True),
        migrations.RunPython(move_snapshots, migrations.RunPython.noop, elidable=True),
    ]
