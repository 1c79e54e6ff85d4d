"""Enumeration values of the interface are stored in its spelling, whatever case the service sent."""

from typing import Any

from django.db import migrations

from servicing.rules import known_spelling

COLUMNS = ["status", "product", "payment_status"]


def respell(apps: Any, schema_editor: Any) -> None:
    messages = apps.get_model("messaging", "Message").objects
    for column in COLUMNS:
        for value in list(messages.order_by().values_list(column, flat=True).distinct()):
            if value != known_spelling(value):
                messages.filter(**{column: value}).update(**{column: known_spelling(value)})


class Migration(migrations.Migration):
    dependencies = [("messaging", "0001_initial")]

    operations = [migrations.RunPython(respell, migrations.RunPython.noop, elidable=True)]
