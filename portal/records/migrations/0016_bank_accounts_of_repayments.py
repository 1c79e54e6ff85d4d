"""Fills the bank account of repayments from their saved answers."""

import json
from typing import Any

from django.db import migrations

BATCH_SIZE = 2_000


def _storable(text: str) -> str:
    """The text without what no database stores."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def fill(apps: Any, schema_editor: Any) -> None:
    records = apps.get_model("registry", "Record").objects.using(schema_editor.connection.alias)
    last = 0
    while True:
        repayments = records.filter(kind="repayment", pk__gt=last, bank_account=None).exclude(answer="")
        batch = list(repayments.only("answer").order_by("pk")[:BATCH_SIZE])
        if not batch:
            return
        last = batch[-1].pk
        for record in batch:
            value = json.loads(record.answer).get("borrower_bank_account_uuid")
            record.bank_account = _storable(value)[:64] if isinstance(value, str) else None
        records.bulk_update([one for one in batch if one.bank_account], ["bank_account"], batch_size=500)


class Migration(migrations.Migration):
    dependencies = [("registry", "0015_due_since_the_copy")]
    operations = [migrations.RunPython(fill, migrations.RunPython.noop, elidable=True)]
