"""A table of what was said about each thing. The next migrations fill it, and remove the columns of records."""

import django.db.models.deletion
from django.db import migrations, models

import portal.records.models


class Migration(migrations.Migration):
    dependencies = [("registry", "0018_first_and_last_time")]

    operations = [
        migrations.CreateModel(
            name="Answer",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("kind", models.CharField(choices=portal.records.models.kind_choices, max_length=16)),
                ("uuid", models.CharField(max_length=64)),
                (
                    "operation",
                    models.CharField(
                        blank=True,
                        help_text="The operation that said it; empty if from file or not known.",
                        max_length=60,
                    ),
                ),
                (
                    "source",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("service", "From the lending service"),
                            ("file", "From file"),
                            ("staff", "Added by staff"),
                        ],
                        max_length=10,
                    ),
                ),
                (
                    "first_at",
                    models.DateTimeField(
                        help_text="When this text was received first; null if version 1.0 saved it.",
                        null=True,
                    ),
                ),
                (
                    "last_at",
                    models.DateTimeField(
                        help_text="When this text was received last; null while it was only asked for.",
                        null=True,
                    ),
                ),
                (
                    "asked_at",
                    models.DateTimeField(help_text="When the service was last asked for it.", null=True),
                ),
                ("failed_at", models.DateTimeField(help_text="When asking failed last.", null=True)),
                ("failing_since", models.DateTimeField(help_text="Since when asking has failed.", null=True)),
                (
                    "failure",
                    models.TextField(blank=True, help_text="Why it failed last, in words for staff."),
                ),
                (
                    "body",
                    models.TextField(
                        blank=True,
                        help_text="As received, in canonical JSON; empty while it was only asked for.",
                    ),
                ),
            ],
        ),
        migrations.AddConstraint(
            model_name="answer",
            constraint=models.UniqueConstraint(fields=("kind", "uuid"), name="one_answer_per_thing"),
        ),
        migrations.AddField(
            model_name="record",
            name="said",
            field=models.ForeignKey(
                db_index=False,
                help_text="What was said about it; null if nobody ever asked or answered. Its text is long.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="records",
                related_query_name="record",
                to="registry.answer",
            ),
        ),
        migrations.AddConstraint(
            model_name="record",
            constraint=models.UniqueConstraint(
                condition=models.Q(("said__isnull", False)), fields=("said",), name="one_record_per_answer"
            ),
        ),
        migrations.RenameField(model_name="snapshot", old_name="answer", new_name="body"),
        migrations.AddField(
            model_name="snapshot",
            name="answer",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="snapshots",
                to="registry.answer",
            ),
        ),
    ]
