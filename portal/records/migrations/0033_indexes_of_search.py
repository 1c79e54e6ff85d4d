"""The indexes that records are found by, without blocking writes on PostgreSQL. It may be interrupted and run again."""

from importlib import import_module
from typing import Any

from django.db import migrations, models
from django.db.models import Q

from portal.core.database import analyze
from portal.records.migration_steps import create_extension, trigrams

helpers = import_module("portal.records.migrations.0008_indexes_of_kinds")
NAMED = ("borrower", "key_person", "application", "loan", "line")
LISTED = Q(archived_at__isnull=True)


def index(kind: str, name: str, fields: list[str], only: Q | None = None) -> models.Index:
    condition = Q(kind=kind) & (only or Q()) & LISTED
    return models.Index(fields=fields, condition=condition, name=f"{kind}s_{name}")


TEXTS = [
    index(kind, "by_text", ["kind", "-id", "search_text", "archived_at"], ~Q(search_text=""))
    for kind in NAMED
]
OTHERS = [
    models.Index(fields=["kind", "name_key"], condition=Q(name_key__isnull=False), name="people_by_name"),
    *(index(kind, "by_due_amount", ["kind", "due_amount", "id"]) for kind in ("loan", "line")),
]


class ReplaceIndexes(helpers.ReplaceIndexes):  # type: ignore[misc,name-defined]  # a module with a number
    """Adds these indexes too; on PostgreSQL, which limits what an index can store, with the trigrams of texts."""

    reversible = True

    def database_backwards(self, app_label: str, editor: Any, before: Any, after: Any) -> None:
        record = after.apps.get_model(app_label, "record")
        for one in self.added:
            helpers.drop_index(editor, one.name)
        for one in record._meta.indexes:
            if one.name in self.removed:
                editor.add_index(record, one)

    def database_forwards(self, app_label: str, editor: Any, before: Any, after: Any) -> None:
        if editor.connection.vendor != "postgresql":
            super().database_forwards(app_label, editor, before, after)
            return
        record = after.apps.get_model(app_label, "record")
        for one in TEXTS:
            helpers.drop_index(editor, one.name)
            editor.add_index(record, trigrams(one), concurrently=True)
        helpers.ReplaceIndexes(OTHERS, self.removed).database_forwards(app_label, editor, before, after)


def update_statistics(apps: Any, schema_editor: Any) -> None:
    """Without statistics of new indexes, SQLite would take them for what others are made for."""
    if apps.get_model("registry", "Record").objects.using(schema_editor.connection.alias).exists():
        analyze()


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("registry", "0032_fill_search_columns")]

    operations = [
        migrations.RunPython(create_extension, migrations.RunPython.noop),
        ReplaceIndexes([*TEXTS, *OTHERS], ["borrowers_same_name"]),
        migrations.RunPython(update_statistics, migrations.RunPython.noop, elidable=True),
    ]
