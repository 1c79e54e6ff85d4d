"""Compares days with the service message by message, and marks those that are gone there."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("messaging", "0003_wider_indexes")]

    operations = [
        migrations.RemoveIndex("message", "messages_by_day"),
        migrations.AddField(
            "message",
            "gone_at",
            models.DateTimeField(help_text="When the service was found not to list it any more.", null=True),
        ),
        migrations.AddIndex(
            "message", models.Index(fields=["day", "is_placed", "gone_at", "id"], name="messages_of_day")
        ),
        migrations.AddIndex(
            "message",
            models.Index(
                condition=models.Q(("gone_at__isnull", False)),
                fields=["gone_at"],
                name="messages_by_gone_at",
            ),
        ),
        migrations.AlterField(
            "day",
            "kept",
            models.PositiveIntegerField(
                db_column="kept",
                help_text="How many messages the service listed when it was last read to its end.",
                null=True,
            ),
        ),
        migrations.RenameField("day", "kept", "listed"),
        migrations.AddField(
            "day",
            "digest",
            models.BigIntegerField(db_default=0, default=0, help_text="Of the IDs that it listed."),
        ),
        migrations.AddField(
            "day",
            "read_at",
            models.DateTimeField(help_text="When it was last read to its end.", null=True),
        ),
        migrations.AddField(
            "day",
            "part_listed",
            models.PositiveIntegerField(
                db_default=0, default=0, help_text="How many were listed up to there."
            ),
        ),
        migrations.AddField("day", "part_digest", models.BigIntegerField(db_default=0, default=0)),
        migrations.AddField("run", "already_here", models.PositiveIntegerField(db_default=0, default=0)),
        migrations.AddField(
            "run",
            "gone",
            models.PositiveIntegerField(
                db_default=0, default=0, help_text="How many the service no longer has."
            ),
        ),
        migrations.AddField(
            "run",
            "filters_ignored",
            models.BooleanField(
                db_default=False, default=False, help_text="Whether it read the list without filters."
            ),
        ),
    ]
