"""Gives an index a name without the app’s label."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("documents", "0002_one_path")]

    operations = [
        migrations.RenameIndex(
            model_name="item", old_name="summaries_i_batch_i_705723_idx", new_name="items_of_batch"
        )
    ]
