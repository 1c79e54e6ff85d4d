"""Indexes of accounts by how long they are past due, and of those whose figures have to be calculated anew."""

from typing import Any

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.models import F, Q

LISTED = Q(archived_at__isnull=True)
INDEXES = [
    models.Index(fields=fields, condition=Q(kind=kind) & condition & LISTED, name=f"{kind}s_{name}")
    for fields, name, condition in (
        (["kind", "figures_version", "id"], "by_figures_version", Q(answer_at__isnull=False)),
        (["kind", "id"], "with_stale_figures", Q(answer_at__gt=F("figures_from"))),
    )
    for kind in ("loan", "line")
] + [
    models.Index(
        fields=[name, "id"],
        condition=Q(kind=kind) & Q(**{f"{name}__isnull": False}) & LISTED,
        name=f"{kind}s_by_{name}",
    )
    for kind, name in (("loan", "oldest_unpaid_due"), ("line", "days_past_due"))
]


class AddIndexOnline(AddIndexConcurrently):
    """Adds an index while others write, where the database can.

    PostgreSQL makes no use of a kind in an index of that kind alone, and would read the whole index: it gets none.
    """

    def database_forwards(self, app_label: str, editor: Any, before: Any, after: Any) -> None:
        if editor.connection.vendor != "postgresql":
            migrations.AddIndex.database_forwards(self, app_label, editor, before, after)
            return
        _, _, options = self.index.deconstruct()
        options["fields"] = [name for name in options["fields"] if name != "kind"]
        plain = AddIndexConcurrently(self.model_name, models.Index(**options))
        plain.database_forwards(app_label, editor, before, after)


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("registry", "0002_figures_of_an_answer")]

    operations = [AddIndexOnline("record", index) for index in INDEXES]
