"""Calls the model of loans and lines what it is. Its table keeps its name."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("registry", "0044_indexes_of_applications")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RenameModel("Record", "Account"),
                migrations.AlterModelTable("account", "registry_record"),
            ]
        ),
        migrations.DeleteModel("SharedCount"),
    ]
