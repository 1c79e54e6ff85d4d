"""The name of a field, which no database stores."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0002_mail"),
    ]

    operations = [
        migrations.AlterField(
            model_name="user",
            name="preferred_name",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="Shown on pages. The audit trail uses the first and last name.",
                max_length=60,
            ),
        ),
    ]
