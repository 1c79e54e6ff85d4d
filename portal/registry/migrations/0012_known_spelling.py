"""Enumeration values of the interface are stored in its spelling, whatever case the service sent."""

from typing import Any

from django.db import migrations

from servicing.values import known_spelling

KINDS = ["borrower", "key_person", "application", "loan", "repayment"]
COLUMNS = ["category", "status", "subtype"]


def respell(apps: Any, schema_editor: Any) -> None:
    for kind in KINDS:
        records = apps.get_model("registry", "Record").objects.filter(kind=kind)
        for column in COLUMNS:
            for value in list(records.order_by().values_list(column, flat=True).distinct()):
                if value != known_spelling(value):
                    records.filter(**{column: value}).update(**{column: known_spelling(value)})


class Migration(migrations.Migration):
    dependencies = [("registry", "0011_status_of_payments_due")]

    operations = [migrations.RunPython(respell, migrations.RunPython.noop, elidable=True)]
