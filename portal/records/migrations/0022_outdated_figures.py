"""Marks accounts to be calculated again whose figures follow earlier rules, or are not from their answer."""

from typing import Any

from django.db import migrations
from django.db.models import F, Q

RULES = 5


def mark(apps: Any, editor: Any) -> None:
    accounts = apps.get_model("registry", "Record").objects.filter(kind__in=("loan", "line"))
    is_current = Q(figures_version=RULES, figures_from=F("answer_at"))
    accounts.exclude(answer_at=None).exclude(is_current).update(figures_good_through=None)


class Migration(migrations.Migration):
    dependencies = [("registry", "0021_remove_moved_columns")]

    operations = [migrations.RunPython(mark, migrations.RunPython.noop)]
