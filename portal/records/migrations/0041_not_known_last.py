"""Orders what is past due by an unknown amount after all known amounts. An interrupted upgrade may begin again."""

from decimal import Decimal
from typing import Any

from django.db import migrations, models

ABOVE_ALL = Decimal(10) ** 14
HELP = "Orders what is past due, not known last."


def move(before: Decimal, after: Decimal) -> Any:
    def work(apps: Any, schema_editor: Any) -> None:
        for name in ("Record", "Borrower"):
            rows = apps.get_model("registry", name).objects.using(schema_editor.connection.alias)
            rows.filter(past_due_rank=before).update(past_due_rank=after)

    return work


class Migration(migrations.Migration):
    dependencies = [("registry", "0040_business_dates_of_texts")]

    operations = [
        migrations.RunPython(move(ABOVE_ALL, -ABOVE_ALL), move(-ABOVE_ALL, ABOVE_ALL), elidable=True),
        *(
            migrations.AlterField(
                model_name=name,
                name="past_due_rank",
                field=models.DecimalField(max_digits=20, decimal_places=4, null=True, help_text=HELP),
            )
            for name in ("record", "borrower")
        ),
    ]
