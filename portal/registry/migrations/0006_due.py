"""Gives loans their rate and the first day that is not paid, and takes zeros that nobody told from borrowers."""

from typing import Any

from django.db import migrations, models
from django.db.models import Exists, OuterRef

from portal.registry import store
from servicing import Loan, codec

BATCH = 500


def fill(apps: Any, schema_editor: Any) -> None:
    """From the last answer of each loan; of borrowers only where no line tells what is past due."""
    records = apps.get_model("registry", "Record").objects
    loans = records.filter(kind="loan").exclude(answer="").only("answer").order_by("pk")
    rows = list(loans[:BATCH])
    while rows:
        for row in rows:
            told = store.columns_from(codec.decode(Loan, row.answer))
            row.due_date, row.rate = told["key_date"], told["rate"]
        records.bulk_update(rows, ["due_date", "rate"], batch_size=100)
        rows = list(loans.filter(pk__gt=rows[-1].pk)[:BATCH])
    lines = records.filter(kind="line", borrower_uuid=OuterRef("uuid"), past_due__isnull=False)
    records.filter(kind="borrower", past_due=0).exclude(Exists(lines)).update(past_due=None)


def order(apps: Any, schema_editor: Any) -> None:
    """PostgreSQL puts what is missing first in a falling order, unless its index says otherwise; SQLite puts it last."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("DROP INDEX IF EXISTS borrowers_by_past_due")
        schema_editor.execute(
            "CREATE INDEX borrowers_by_past_due ON registry_record (kind, past_due DESC NULLS LAST, id DESC)"
            " WHERE kind = 'borrower' AND archived_at IS NULL"
        )


class Migration(migrations.Migration):
    dependencies = [
        ("registry", "0005_checked"),
    ]

    operations = [
        migrations.AddField(
            model_name="record",
            name="rate",
            field=models.DecimalField(decimal_places=4, max_digits=20, null=True),
        ),
        migrations.AlterField(
            model_name="record",
            name="due_date",
            field=models.DateField(help_text="Of a loan the first day that is not paid.", null=True),
        ),
        migrations.AddIndex(
            model_name="record",
            index=models.Index(
                condition=models.Q(("archived_at__isnull", True)),
                fields=["kind", "due_date", "id"],
                name="records_by_due_date",
            ),
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
        migrations.RunPython(order, migrations.RunPython.noop),
    ]
