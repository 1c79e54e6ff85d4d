"""Fills the new columns of saved messages, in batches. An interrupted upgrade goes on where it was."""

from datetime import UTC, date, datetime
from typing import Any

from django.db import migrations

from portal.messaging.text import comparable_payload, search_text
from servicing import codec

BATCH_SIZE = 500
NEWEST = 100


def fill_messages(apps: Any, schema_editor: Any) -> None:
    messages = apps.get_model("messaging", "Message").objects.using(schema_editor.connection.alias)
    empty = messages.filter(payload__isnull=True).only("body").order_by("pk")
    last = -(2**63)
    # By key, because a payload that is a list stays empty.
    while batch := list(empty.filter(pk__gt=last)[:BATCH_SIZE]):
        last = batch[-1].pk
        for message in batch:
            raw = codec.parse(message.body)
            created_at = raw.get("created_at")
            # A key was the second, and 31 bits of the ID.
            message.recorded_at = datetime.fromtimestamp(message.pk >> 31, tz=UTC)
            message.recorded_text = created_at.replace("\0", "\ufffd") if isinstance(created_at, str) else ""
            message.payload = comparable_payload(raw.get("payload"))
            message.search_text = search_text(raw)
        messages.bulk_update(
            batch, ["recorded_at", "recorded_text", "payload", "search_text"], batch_size=100
        )


def mark_unbroken_run(apps: Any, schema_editor: Any) -> None:
    """The last run that read every day is unbroken, so that the next one reads only what is new."""
    alias = schema_editor.connection.alias
    runs = apps.get_model("messaging", "Run").objects.using(alias)
    messages = apps.get_model("messaging", "Message").objects.using(alias)
    whole = runs.filter(failure="", ended_at__isnull=False, since=None, until=None, unusable=0)
    if (run := whole.order_by("-pk").first()) and not runs.filter(is_unbroken=True).exists():
        newest = messages.filter(stored_at__lt=run.started_at, gone_at=None).order_by("-recorded_at")
        run.newest = list(newest.values_list("uuid", flat=True)[:NEWEST])
        run.is_unbroken = True
        run.save()


def convert_others(apps: Any, schema_editor: Any) -> None:
    alias = schema_editor.connection.alias
    # The "day" of a service that ignores dates.
    apps.get_model("messaging", "Day").objects.using(alias).filter(day=date.min).delete()
    jobs = apps.get_model("jobs", "Job").objects.using(alias)
    for job in jobs.filter(name="messaging.sync", state__in=["waiting", "running"]):
        if "read_before" in job.arguments:
            job.name, job.label, job.arguments = "messaging.compare", "Compare messages", {"all_days": True}
            job.key = job.name
            job.save()


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("messaging", "0006_plain_rows"), ("jobs", "0002_one_queue")]

    operations = [
        migrations.RunPython(fill_messages, migrations.RunPython.noop),
        migrations.RunPython(mark_unbroken_run, migrations.RunPython.noop),
        migrations.RunPython(convert_others, migrations.RunPython.noop),
    ]
