"""The index of the texts of key people, and no more indexes of their records."""

from importlib import import_module

from django.db import migrations, models
from django.db.models import Q

from portal.records.migration_steps import AddTextIndex

helpers = import_module("portal.records.migrations.0033_indexes_of_search")
TEXTS = models.Index(
    fields=["-id", "search_text", "archived_at"],
    condition=~Q(search_text="") & Q(archived_at__isnull=True),
    name="people_by_text",
)


class Migration(migrations.Migration):
    dependencies = [("registry", "0035_move_key_people")]

    operations = [
        AddTextIndex("keyperson", TEXTS),
        *(
            migrations.RemoveIndex("record", f"key_persons_by_{name}")
            for name in ("updated_at", "created_at", "state", "text")
        ),
        migrations.AlterField(
            "record",
            "category",
            models.CharField(
                blank=True, help_text="Product of an account, type of a borrower.", max_length=40
            ),
        ),
        migrations.AlterField(
            "record",
            "name_key",
            models.CharField(
                help_text="The letters and digits of a borrower's name, folded.", max_length=300, null=True
            ),
        ),
        migrations.RunPython(helpers.update_statistics, migrations.RunPython.noop, elidable=True),
    ]
