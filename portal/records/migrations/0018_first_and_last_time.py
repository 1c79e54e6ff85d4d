from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("registry", "0017_folded_names")]

    operations = [
        migrations.RemoveIndex(model_name="snapshot", name="registry_sn_record__279ac3_idx"),
        migrations.RenameField(model_name="snapshot", old_name="at", new_name="last_at"),
        migrations.AlterModelOptions(name="snapshot", options={"ordering": ["-last_at", "-id"]}),
        migrations.AddIndex(
            model_name="snapshot",
            index=models.Index(fields=["record", "-last_at"], name="snapshots_of_record"),
        ),
        migrations.AlterField(
            model_name="snapshot",
            name="last_at",
            field=models.DateTimeField(help_text="When it was received last."),
        ),
        migrations.AddField(
            model_name="snapshot",
            name="first_at",
            field=models.DateTimeField(help_text="When it was received first; null as above.", null=True),
        ),
        migrations.AlterField(
            model_name="record",
            name="answer_at",
            field=models.DateTimeField(help_text="When this answer was received last.", null=True),
        ),
        migrations.AddField(
            model_name="record",
            name="answer_first_at",
            field=models.DateTimeField(
                help_text="When this answer was received first; null if version 1.0 saved it.", null=True
            ),
        ),
    ]
