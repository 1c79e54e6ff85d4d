"""Removes the version of the rules from records: a migration that changes a rule empties ``figures_good_through``."""

from django.db import migrations, models

INDEXES = (
    "loans_by_figures_version",
    "lines_by_figures_version",
    "loans_with_stale_figures",
    "lines_with_stale_figures",
)


class Migration(migrations.Migration):
    dependencies = [("registry", "0022_outdated_figures")]

    operations = [
        *(migrations.RemoveIndex(model_name="record", name=name) for name in INDEXES),
        migrations.RemoveField(model_name="record", name="figures_from"),
        migrations.RemoveField(model_name="record", name="figures_version"),
        migrations.AlterField(
            model_name="record",
            name="figures_good_through",
            field=models.DateField(
                help_text="The last business date on which they hold; null until they are calculated, also by new rules.",
                null=True,
            ),
        ),
    ]
