"""Enumeration values of the interface are stored in its spelling, whatever case the service sent."""

from typing import Any

from django.db import migrations

from servicing.rules import known_spelling

# Not those of key people: their title is only shown, in words.
KINDS = ["borrower", "application", "loan", "repayment"]
COLUMNS = ["category", "status", "subtype"]


def respell(apps: Any, schema_editor: Any) -> None:
    for kind in KINDS:
        records = apps.get_model("registry", "Record").objects.filter(kind=kind)
        for values in list(records.order_by().values_list(*COLUMNS).distinct()):
            respelled = tuple(map(known_spelling, values))
            if respelled != values:
                saved, wanted = (dict(zip(COLUMNS, each, strict=True)) for each in (values, respelled))
                records.filter(**saved).update(**wanted)


class Migration(migrations.Migration):
    dependencies = [("registry", "0011_status_of_payments_due")]

    operations = [migrations.RunPython(respell, migrations.RunPython.noop, elidable=True)]
