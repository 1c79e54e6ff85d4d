from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("lookup", "0001_initial")]

    operations = [
        migrations.RenameField("upload", "told_at", "exported_at"),
        migrations.AlterField(
            "upload",
            "exported_at",
            models.DateTimeField(help_text="Its profiles hide no answer that is newer."),
        ),
    ]
