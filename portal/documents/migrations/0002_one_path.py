"""Drops the rows that kept a person from creating two documents at once, and adds a place for joined PDFs."""

from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def serve_as_zip(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Serve earlier batches as ZIP files: their summaries were joined when they were downloaded."""
    apps.get_model("documents", "Batch").objects.filter(form="joined").update(form="zip")


class Migration(migrations.Migration):
    dependencies = [("documents", "0001_initial")]

    operations = [
        migrations.DeleteModel(name="Turn"),
        migrations.AddField(
            model_name="batch",
            name="document",
            field=models.BinaryField(
                help_text="The joined PDF; items of a ZIP file have their own.", null=True
            ),
        ),
        migrations.RunPython(serve_as_zip, migrations.RunPython.noop),
        migrations.AlterField(
            model_name="batch",
            name="form",
            field=models.CharField(
                choices=[
                    ("joined", "One PDF with all of them"),
                    ("zip", "One PDF each, in a ZIP file"),
                ],
                default="zip",
                max_length=10,
            ),
        ),
    ]
