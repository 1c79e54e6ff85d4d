"""Apps that version 1.0 had under another label: renames their tables, migrations and content types.

``manage.py upgrade`` does it before it migrates, since Django takes a new label for an app without tables.
"""

from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, Error, Tags, register
from django.db import connections, transaction
from django.db.migrations.recorder import MigrationRecorder

NEW_LABELS = {"summaries": "documents"}


def old_labels(using: str) -> list[str]:
    """The labels of version 1.0 that the database still has."""
    recorder = MigrationRecorder(connections[using])
    if not recorder.has_table():
        return []
    found = recorder.migration_qs.filter(app__in=NEW_LABELS)
    return list(found.order_by("app").values_list("app", flat=True).distinct())


def rename_apps(using: str) -> None:
    """Rename what the database has under old labels, all or nothing."""
    connection = connections[using]
    with transaction.atomic(using):
        for label in old_labels(using):
            _rename_app(connection, label, NEW_LABELS[label])


def _rename_app(connection: Any, old: str, new: str) -> None:
    quote = connection.ops.quote_name
    MigrationRecorder(connection).migration_qs.filter(app=old).update(app=new)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE django_content_type SET app_label = %s WHERE app_label = %s", [new, old])
        for table in connection.introspection.table_names(cursor):
            if table.startswith(f"{old}_"):
                renamed = f"{new}_{table.removeprefix(f'{old}_')}"
                cursor.execute(f"ALTER TABLE {quote(table)} RENAME TO {quote(renamed)}")


@register(Tags.database)
def check_labels(
    app_configs: Any, databases: Sequence[str] | None = None, **options: Any
) -> list[CheckMessage]:
    """Stop a plain ``migrate``, which would create the tables of these apps again, empty."""
    return [
        Error("This database is of version 1.0. Type: manage.py upgrade", id="operations.E001")
        for using in databases or ()
        if old_labels(using)
    ]
