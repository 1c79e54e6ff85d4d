"""Jobs are named after the app that they are in."""

from typing import Any

from django.db import migrations

NEW_NAMES = {
    "registry.recalculate_figures": "records.recalculate_figures",
    "summaries.long_document": "documents.long_document",
    "summaries.batch": "documents.batch",
    "summaries.joined_batch": "documents.joined_batch",
    "summaries.remove": "documents.remove",
}


def rename(apps: Any, editor: Any) -> None:
    jobs = apps.get_model("jobs", "Job").objects
    for old, new in NEW_NAMES.items():
        jobs.filter(name=old).update(name=new)
        jobs.filter(key=old).update(key=new)
        apps.get_model("jobs", "Schedule").objects.filter(name=old).update(name=new)


class Migration(migrations.Migration):
    dependencies = [("jobs", "0002_one_queue")]

    operations = [migrations.RunPython(rename, migrations.RunPython.noop)]
