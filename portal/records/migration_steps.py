"""Steps of migrations that depend on the kind of database: PostgreSQL's extension and its own indexes."""

from typing import Any, Final

from django.contrib.postgres.indexes import GinIndex
from django.db import migrations, models

# PostgreSQL reads an index backwards with the empty first, but lists have the empty last.
FALLING: Final = {
    "account_by_past_due_rank": "registry_record (kind, past_due_rank DESC NULLS LAST, id DESC)",
    "borrower_by_past_due_rank": "registry_borrower (past_due_rank DESC NULLS LAST, id DESC)",
    "application_by_submitted_at": "registry_application (submitted_at DESC NULLS LAST, id DESC)",
    "repayments_by_effective_on": "registry_repayment (effective_on DESC NULLS LAST, id DESC)",
    "repayments_by_status_and_day": "registry_repayment (status, effective_on DESC NULLS LAST, id DESC)",
    "repayments_by_failure_and_day": "registry_repayment (has_failed, effective_on DESC NULLS LAST, id DESC)",
}


def create_extension(apps: Any, schema_editor: Any) -> None:
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm")


def trigrams(one: models.Index) -> GinIndex:
    return GinIndex(
        fields=["search_text"], opclasses=["gin_trgm_ops"], condition=one.condition, name=one.name
    )


class AddTextIndex(migrations.AddIndex):
    """On PostgreSQL, which limits what an index can store, with the trigrams of texts."""

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        if schema_editor.connection.vendor != "postgresql":
            super().database_forwards(app_label, schema_editor, from_state, to_state)
            return
        model = to_state.apps.get_model(app_label, self.model_name)
        schema_editor.add_index(model, trigrams(self.index))


def change_falling_indexes(apps: Any, schema_editor: Any) -> None:
    """Have those of the default orders only."""
    if schema_editor.connection.vendor != "postgresql":
        return
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("SELECT indexname FROM pg_indexes WHERE indexname LIKE '%\\_falling'")
        names = [name for (name,) in cursor.fetchall()]
    for name in names:
        schema_editor.execute(f'DROP INDEX "{name}"')
    for name, columns in FALLING.items():
        schema_editor.execute(f"CREATE INDEX {name}_falling ON {columns}")
