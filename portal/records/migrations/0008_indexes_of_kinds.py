"""Indexes of one kind each in the place of those of all kinds, of which a record was in many that no list of it reads.

The version before this one reads each kind on its own too, except for an amount or a day that was typed.
"""

from typing import Any

from django.db import migrations, models
from django.db.migrations.operations.base import Operation
from django.db.models import Q

USUAL, CREATED, AMOUNT = ["-updated_at", "-id"], ["-created_at", "-id"], ["amount", "id"]
KEY_DATE, CHECKED, STATUS = ["key_date", "id"], ["checked_at", "id"], ["status", "-updated_at", "-id"]
ADDED: dict[str, list[list[str]]] = {
    "borrower": [
        [*USUAL, "created_at"],
        CREATED,
        ["subtype", *USUAL, "state", "status", "flagged"],
        ["state", *USUAL, "subtype", "status", "flagged"],
        ["status", *USUAL, "subtype", "state", "flagged"],
    ],
    "key_person": [USUAL, CREATED, ["state", *USUAL]],
    "application": [USUAL, CREATED, AMOUNT, [*CHECKED, "category"], STATUS],
    "loan": [USUAL, CREATED, AMOUNT, KEY_DATE, CHECKED, ["state", *USUAL], STATUS],
    "line": [USUAL, CREATED, AMOUNT, KEY_DATE, CHECKED],
    "repayment": [USUAL, CREATED, AMOUNT, ["subtype", *USUAL], STATUS],
    "loan_repayments": [CHECKED],
    "line_repayments": [CHECKED],
}
FLAGGED = {"borrower": ["subtype", "state", "status"], "loan": [], "line": [], "repayment": []}
REMOVED = [
    *(f"records_by_{column}" for column in ("checked_at", "updated_at", "created_at", "amount", "key_date")),
    *(f"records_by_{column}" for column in ("subtype", "state", "status", "flagged")),
    *("records_in_status", "loans_by_needs_check", "lines_by_needs_check"),
]
FALLING = {
    "amount": ["application", "loan", "line", "repayment"],
    "key_date": ["loan", "line"],
    "checked_at": ["loan", "line"],
}
"""The columns that may be empty, and the kinds whose list has them as an order."""
FALLING_REMOVED = [
    *(f"records_by_{column}_falling" for column in FALLING),
    # Nothing is ordered by this column with the empty last.
    *(f"{kind}s_by_past_due_falling" for kind in ("borrower", "loan", "line")),
]


def index(kind: str, name: str, fields: list[str], only: Q | None = None) -> models.Index:
    return models.Index(
        fields=["kind", *fields, "archived_at"],
        condition=Q(kind=kind) & (only or Q()) & Q(archived_at__isnull=True),
        name=f"{kind.removesuffix('s')}s_{name}",
    )


INDEXES = [
    *(index(kind, f"by_{one[0].strip('-')}", one) for kind, lists in ADDED.items() for one in lists),
    *(index(kind, "in_status", ["status", "id"]) for kind in ("application", "loan", "repayment")),
    *(
        index(kind, "flagged", [*USUAL, "flagged", *more], Q(flagged__in=[True]))
        for kind, more in FLAGGED.items()
    ),
    *(
        index(kind, "to_check", [*USUAL, "needs_check"], Q(needs_check__in=[True]))
        for kind in ("loan", "line")
    ),
]


def drop_index(editor: Any, name: str) -> None:
    """Drop an index while others write, where the database can; an interrupted upgrade may have done it already."""
    online = "CONCURRENTLY " if editor.connection.vendor == "postgresql" else ""
    editor.execute(f"DROP INDEX {online}IF EXISTS {name}")


class ReplaceIndexes(Operation):
    """Adds and removes indexes of records, without blocking writes on PostgreSQL. It may be interrupted and run again.

    One operation does all, because Django renders the models again after each.
    """

    reversible = False

    def __init__(self, added: list[models.Index], removed: list[str]) -> None:
        self.added, self.removed = added, removed

    def state_forwards(self, app_label: str, state: Any) -> None:
        options = state.models[app_label, "record"].options
        gone = {*self.removed, *(one.name for one in self.added)}
        options["indexes"] = [*(one for one in options["indexes"] if one.name not in gone), *self.added]
        state.reload_model(app_label, "record", delay=True)

    def database_forwards(self, app_label: str, editor: Any, before: Any, after: Any) -> None:
        record = after.apps.get_model(app_label, "record")
        for one in self.added:
            drop_index(editor, one.name)
            if editor.connection.vendor == "postgresql":
                # It needs no columns that the condition fixes, and would read the whole index for a kind.
                _, _, options = one.deconstruct()
                options["fields"] = [
                    name for name in options["fields"] if name not in ("kind", "archived_at")
                ]
                editor.add_index(record, models.Index(**options), concurrently=True)
            else:
                editor.add_index(record, one)
        for name in self.removed:
            drop_index(editor, name)

    def describe(self) -> str:
        return "Replace indexes of records"


def change_falling_indexes(apps: Any, editor: Any) -> None:
    """Do the same for the falling orders, which Django has no words for."""
    if editor.connection.vendor != "postgresql":
        return
    for column, kinds in FALLING.items():
        for kind in kinds:
            drop_index(editor, f"{kind}s_by_{column}_falling")
            editor.execute(
                f"CREATE INDEX CONCURRENTLY {kind}s_by_{column}_falling ON registry_record"
                f" ({column} DESC NULLS LAST, id DESC) WHERE kind = '{kind}' AND archived_at IS NULL"
            )
    for name in FALLING_REMOVED:
        drop_index(editor, name)


def recreate_late_indexes(apps: Any, editor: Any) -> None:
    """Make the indexes of late accounts the newest again: of two suitable ones, SQLite takes the newer."""
    record = apps.get_model("registry", "Record")
    for one in record._meta.indexes if editor.connection.vendor == "sqlite" else ():
        if one.name.endswith(("s_late", "s_on_time")):
            drop_index(editor, one.name)
            editor.add_index(record, one)


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("registry", "0007_indexes_of_late_accounts")]

    operations = [
        ReplaceIndexes(INDEXES, REMOVED),
        migrations.RunPython(change_falling_indexes, migrations.RunPython.noop),
        migrations.RunPython(recreate_late_indexes, migrations.RunPython.noop),
    ]
