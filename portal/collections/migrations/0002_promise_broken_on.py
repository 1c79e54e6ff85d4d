"""When a promise was first seen broken."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("collections", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="promise",
            name="broken_on",
            field=models.DateField(
                help_text="The business date on which it was first seen broken.", null=True
            ),
        )
    ]
