"""Which mail a person wants, and the mail that waits to be sent."""

import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0001_initial"),
    ]

    operations = [
        migrations.AddField(
            model_name="user",
            name="mail_approvals",
            field=models.BooleanField(db_default=False, default=False, verbose_name="approvals"),
        ),
        migrations.AddField(
            model_name="user",
            name="mail_digest",
            field=models.BooleanField(db_default=False, default=False, verbose_name="daily digest"),
        ),
        migrations.AddField(
            model_name="user",
            name="mail_follow_ups",
            field=models.BooleanField(db_default=False, default=False, verbose_name="follow-ups due"),
        ),
        migrations.AddField(
            model_name="user",
            name="mail_promises",
            field=models.BooleanField(db_default=False, default=False, verbose_name="promises due today"),
        ),
        migrations.CreateModel(
            name="OutgoingMail",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "key",
                    models.CharField(
                        help_text="What it is about, and who gets it.", max_length=200, unique=True
                    ),
                ),
                ("address", models.EmailField(max_length=254)),
                ("sealed", models.TextField(help_text="Subject and text, encrypted until it left.")),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "Waiting"),
                            ("sending", "Being sent"),
                            ("sent", "Sent"),
                            ("unknown", "May have arrived"),
                            ("failed", "Given up"),
                        ],
                        default="waiting",
                        max_length=10,
                    ),
                ),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                ("problem", models.CharField(blank=True, max_length=300)),
                ("created_at", models.DateTimeField(db_index=True, default=django.utils.timezone.now)),
                (
                    "due_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now, help_text="When it is tried, or was claimed."
                    ),
                ),
            ],
            options={
                "ordering": ["id"],
                "indexes": [models.Index(fields=["state", "due_at"], name="outgoing_mail_due")],
            },
        ),
    ]
