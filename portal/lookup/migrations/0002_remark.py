from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("lookup", "0001_uploads"),
    ]

    operations = [
        migrations.AddField(
            model_name="upload",
            name="remark",
            field=models.TextField(
                blank=True, db_default="", default="", help_text="What is said of the lines that were taken."
            ),
        ),
    ]
