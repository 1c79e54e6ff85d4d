"""Removes the indexes of the records of lists, of which there are none any more."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("registry", "0025_remove_records_of_lists")]

    operations = [
        migrations.RemoveIndex(model_name="record", name=f"{kind}_repayments_by_checked_at")
        for kind in ("loan", "line")
    ]
