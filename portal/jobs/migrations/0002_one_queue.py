"""A job's row is the queue: ``due_at`` is when it may start, and while it runs, when its lease ends.

What waited in the engine before is waiting in the rows, too.
"""

from typing import Any

from django.db import migrations, models
from django.db.models import F, Value
from django.db.models.functions import Coalesce
from django.utils import timezone

WITHDRAWN = "operations.sign_audit"


def set_due_times(apps: Any, schema_editor: Any) -> None:
    job = apps.get_model("jobs", "Job")
    job.objects.filter(name=WITHDRAWN, state__in=["waiting", "running"]).delete()
    apps.get_model("jobs", "Schedule").objects.filter(name=WITHDRAWN).delete()
    # The time as Django writes it, because a worker compares the text: SQLite's own has three digits fewer.
    now = timezone.now()
    job.objects.filter(state="waiting").update(due_at=now)
    job.objects.filter(state="running").update(due_at=Coalesce(F("lease_until"), Value(now)))


class Migration(migrations.Migration):
    dependencies = [("jobs", "0001_initial")]

    operations = [
        migrations.RunPython(set_due_times, migrations.RunPython.noop),
        migrations.RemoveField(model_name="job", name="lease_until"),
        migrations.RemoveField(model_name="job", name="task_id"),
        migrations.AlterField(
            model_name="job",
            name="due_at",
            field=models.DateTimeField(
                default=timezone.now,
                help_text="When it may start; while it runs, when its worker counts as lost.",
            ),
        ),
        migrations.AddIndex(
            model_name="job", index=models.Index(fields=["state", "due_at"], name="due_jobs")
        ),
        migrations.RunSQL("DROP TABLE IF EXISTS django_tasks_database_dbtaskresult", migrations.RunSQL.noop),
    ]
