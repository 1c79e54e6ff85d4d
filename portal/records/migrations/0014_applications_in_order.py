"""Fills in when the service created each application, and orders their list by it. It may be interrupted and run again."""

import json
from importlib import import_module
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import migrations

from servicing.values import RemoteTime

helpers = import_module("portal.records.migrations.0008_indexes_of_kinds")
BATCH_SIZE = 1_000
FALLING = "applications_by_submitted_at_falling"


def set_submitted_at(apps: Any, editor: Any) -> None:
    """Read the time from the saved answers."""
    records = apps.get_model("registry", "Record").objects.filter(kind="application").exclude(answer="")
    zone, last = ZoneInfo(settings.SERVICING_TIME_ZONE), 0
    while rows := list(records.filter(pk__gt=last).order_by("pk").only("answer")[:BATCH_SIZE]):
        for row in rows:
            text = json.loads(row.answer).get("created_at")
            row.submitted_at = RemoteTime(text).guess(zone) if isinstance(text, str) else None
        records.bulk_update(rows, ["submitted_at"])
        last = rows[-1].pk


def add_falling_index(apps: Any, editor: Any) -> None:
    """Add the index of the falling order, which Django has no words for."""
    if editor.connection.vendor == "postgresql":
        helpers.drop_index(editor, FALLING)
        editor.execute(
            f"CREATE INDEX CONCURRENTLY {FALLING} ON registry_record (submitted_at DESC NULLS LAST, id DESC)"
            " WHERE kind = 'application' AND archived_at IS NULL"
        )


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("registry", "0013_submitted_at")]

    operations = [
        migrations.RunPython(set_submitted_at, migrations.RunPython.noop, elidable=True),
        helpers.ReplaceIndexes([helpers.index("application", "by_submitted_at", ["submitted_at", "id"])], []),
        migrations.RunPython(add_falling_index, migrations.RunPython.noop),
    ]
