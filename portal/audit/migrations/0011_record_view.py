from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("audit", "0010_hash_format"),
    ]

    operations = [
        migrations.AlterModelTable(name="sighting", table="audit_sighting"),
        migrations.RenameModel(old_name="Sighting", new_name="RecordView"),
    ]
