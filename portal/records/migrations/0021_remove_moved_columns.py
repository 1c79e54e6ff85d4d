"""Removes from records what their answers have now, the long text first: SQLite rewrites the table for each column."""

import django.db.models.deletion
from django.db import migrations, models

MOVED = ("answer", "answer_first_at", "source", "asked_at", "failed_at", "failing_since", "failure")


class Migration(migrations.Migration):
    dependencies = [("registry", "0020_move_answers")]

    operations = [
        *(migrations.RemoveField(model_name="record", name=name) for name in MOVED),
        migrations.AlterField(
            model_name="record",
            name="answer_at",
            field=models.DateTimeField(help_text="When its answer was received last.", null=True),
        ),
        migrations.RemoveIndex(model_name="snapshot", name="snapshots_of_record"),
        migrations.RemoveField(model_name="snapshot", name="record"),
        migrations.AlterField(
            model_name="snapshot",
            name="answer",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="snapshots",
                to="registry.answer",
            ),
        ),
        migrations.AddIndex(
            model_name="snapshot",
            index=models.Index(fields=["answer", "-last_at"], name="snapshots_of_answer"),
        ),
    ]
