"""Messages are plain rows: columns for their time and for what is found in them, and no search index of their own."""

from typing import Any

import django.utils.timezone
from django.db import migrations, models

OLD_INDEXES = [
    *("messages_by_event", "messages_by_status", "messages_by_product", "messages_by_payment_status"),
    *("messages_of_subject_uuid", "messages_of_bank_account", "messages_of_amount", "messages_of_day"),
    "messages_changed",
]


def drop_search_index(apps: Any, schema_editor: Any) -> None:
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("DROP INDEX IF EXISTS messaging_search")
        return
    for moment in ("insert", "delete"):
        schema_editor.execute(f"DROP TRIGGER IF EXISTS messaging_search_{moment}")
    for table in ("messaging_search", "messaging_facts"):
        schema_editor.execute(f"DROP TABLE IF EXISTS {table}")


class Migration(migrations.Migration):
    dependencies = [("messaging", "0005_fold_again")]

    operations = [
        migrations.RunPython(drop_search_index, migrations.RunPython.noop),
        migrations.RemoveIndex(model_name="message", name="messages_by_gone_at"),
        migrations.AlterModelOptions(name="message", options={"ordering": ["-recorded_at", "-id"]}),
        *(migrations.RemoveIndex(model_name="message", name=name) for name in OLD_INDEXES),
        *(
            migrations.RemoveField(model_name="day", name=name)
            for name in ("counts", "digest", "offset", "part_digest", "part_listed")
        ),
        migrations.RenameField(model_name="day", old_name="read_at", new_name="compared_at"),
        migrations.AlterField(
            model_name="day",
            name="compared_at",
            field=models.DateTimeField(help_text="When each message was last compared.", null=True),
        ),
        migrations.AlterField(
            model_name="day",
            name="listed",
            field=models.PositiveIntegerField(
                help_text="How many messages the service listed when they were last compared.", null=True
            ),
        ),
        migrations.AddField(
            model_name="message",
            name="payload",
            field=models.JSONField(
                help_text="The first payload with folded texts, to find values at their path. Never shown.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="message",
            name="recorded_at",
            field=models.DateTimeField(
                default=django.utils.timezone.now,
                help_text="Its place in order of time; if uncertain, a guess within its day.",
            ),
        ),
        migrations.AddField(
            model_name="message",
            name="recorded_text",
            field=models.TextField(blank=True, default="", help_text="The time as the service sent it."),
            preserve_default=False,
        ),
        migrations.AlterField(
            model_name="message",
            name="id",
            field=models.BigAutoField(
                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
            ),
        ),
        migrations.AlterField(
            model_name="message",
            name="search_text",
            field=models.TextField(blank=True, help_text="Every value, folded, one a line."),
        ),
        migrations.AlterField(
            model_name="message",
            name="stored_at",
            field=models.DateTimeField(
                default=django.utils.timezone.now, help_text="When it was first seen here."
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="is_unbroken",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="Whether every message at or below its newest ones is saved.",
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="newest",
            field=models.JSONField(
                default=list, help_text="The IDs on the first page of the list that it read."
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="reached",
            field=models.JSONField(
                help_text="The last page that it saved: its limit, offset, what that counts, and the total.",
                null=True,
            ),
        ),
        migrations.AlterField(
            model_name="run",
            name="claimed",
            field=models.PositiveIntegerField(default=0, help_text="How many messages the service listed."),
        ),
        migrations.AlterField(
            model_name="run",
            name="filters_ignored",
            field=models.BooleanField(
                db_default=False, default=False, help_text="Whether the service ignored the days."
            ),
        ),
        migrations.AlterField(
            model_name="run",
            name="missing",
            field=models.PositiveIntegerField(
                default=0, help_text="How many messages seemed to be missing when it began."
            ),
        ),
    ]
