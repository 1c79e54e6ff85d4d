"""Writes search texts anew that an earlier form of folding left with typographic apostrophes or dashes."""

from typing import Any

from django.db import migrations

from portal.registry.search.texts import lines_of, search_text

BATCH = 1_000


def refold(apps: Any, schema_editor: Any) -> None:
    """The same lines, folded as what is typed is folded today; rows that say so already are left alone."""
    records = apps.get_model("registry", "Record").objects.only("search_text").order_by("pk")
    rows = list(records[:BATCH])
    while rows:
        changed = []
        for row in rows:
            before, row.search_text = row.search_text, search_text(*lines_of(row))
            changed += [row] if row.search_text != before else []
        records.bulk_update(changed, ["search_text"], batch_size=100)
        rows = list(records.filter(pk__gt=rows[-1].pk)[:BATCH])


class Migration(migrations.Migration):
    dependencies = [("registry", "0003_search")]
    operations = [migrations.RunPython(refold, migrations.RunPython.noop)]
