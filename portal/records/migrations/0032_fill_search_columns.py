"""Fills the columns that records are found by, in batches. An interrupted upgrade goes on where it was."""

import re
from typing import Any

from django.db import migrations, transaction
from django.db.models import Q

from portal.core.folding import fold, folded_key

BATCH_SIZE = 500
# Texts of version 1.0 have it around each line, and twice before a name.
MARK = "ǂ"
PEOPLE = ("borrower", "key_person")
UPDATE = "UPDATE registry_record SET search_text = %s, name_key = %s WHERE id = %s"
MIN_WORD, MAX_WORD = 4, 60


def fill_records(apps: Any, schema_editor: Any) -> None:
    alias = schema_editor.connection.alias
    records, words = (
        apps.get_model("registry", name).objects.using(alias) for name in ("Record", "NameWord")
    )
    unfilled = records.filter(Q(search_text__contains=MARK) | Q(kind__in=PEOPLE, name_key__isnull=True))
    needed = ("kind", "label", "state", "category", "status", "search_text", "name_key")
    last, ordered = 0, unfilled.only(*needed).order_by("pk")
    while batch := list(ordered.filter(pk__gt=last)[:BATCH_SIZE]):
        last = batch[-1].pk
        found = set()
        for record in batch:
            record.search_text = plain_text(record)
            if record.kind in PEOPLE:
                record.name_key = folded_key(record.label)[:300]
                found.update(re.findall(r"\w+", fold(record.label)))
        rows = [[record.search_text, record.name_key, record.pk] for record in batch]
        with transaction.atomic(alias), schema_editor.connection.cursor() as cursor:
            words.bulk_create(
                [words.model(word=word) for word in sorted(found) if MIN_WORD <= len(word) <= MAX_WORD],
                ignore_conflicts=True,
            )
            # Many times faster than bulk_update, which compares every row with every value.
            cursor.executemany(UPDATE, rows)


def plain_text(record: Any) -> str:
    """Lines between line breaks, the name first, without product and status, which have columns."""
    name, state = fold(record.label)[:500].strip(), [fold(record.state)] if record.kind in PEOPLE else []
    left_out = {name} if record.kind in PEOPLE else {name, fold(record.category), fold(record.status)}
    lines = [line for line in re.split(rf"[{MARK}\n]+", record.search_text) if line not in left_out]
    lines = [name, *filter(None, dict.fromkeys([*lines, *state]))]
    return "".join(f"\n{line}" for line in lines) + "\n" if any(lines) else ""


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("registry", "0031_remove_columns_of_repayments")]

    operations = [migrations.RunPython(fill_records, migrations.RunPython.noop, elidable=True)]
