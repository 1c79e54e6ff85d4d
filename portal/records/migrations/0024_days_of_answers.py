"""The business date of each answer, and the index that finds old ones. The next migration fills in the date."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("registry", "0023_remove_versions_of_figures")]

    operations = [
        migrations.AddField(
            model_name="answer",
            name="last_on",
            field=models.DateField(
                help_text="The business date of that, which a demo's days that pass don't change; null if not known.",
                null=True,
            ),
        ),
        migrations.AddIndex(
            model_name="answer",
            index=models.Index(fields=["kind", "last_at"], name="answers_by_last_at"),
        ),
    ]
