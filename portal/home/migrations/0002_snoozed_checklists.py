"""Snoozed onboarding checklists get the key of their new name."""

from typing import Any

from django.db import migrations
from django.db.models import F, Value
from django.db.models.functions import Replace


def rename(apps: Any, old: str, new: str) -> None:
    snoozed = apps.get_model("home", "Snooze").objects.filter(key__startswith=old)
    snoozed.update(key=Replace(F("key"), Value(old), Value(new)))


class Migration(migrations.Migration):
    dependencies = [("home", "0001_initial")]

    operations = [
        migrations.RunPython(
            lambda apps, editor: rename(apps, "handover:", "checklist:"),
            lambda apps, editor: rename(apps, "checklist:", "handover:"),
        )
    ]
