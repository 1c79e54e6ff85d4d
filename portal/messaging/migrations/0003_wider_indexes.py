"""Lets the indexes of amounts, payments and bank accounts answer together with another filter."""

from django.db import migrations, models

NARROWING = ["event", "status", "product", "payment_status"]


class Migration(migrations.Migration):
    dependencies = [("messaging", "0002_digests_apart")]

    operations = [
        migrations.RemoveIndex("message", "messages_by_amount"),
        migrations.RemoveIndex("message", "messages_by_subject_uuid"),
        migrations.RemoveIndex("message", "messages_by_bank_account"),
        migrations.AddIndex(
            "message", models.Index(fields=["amount", "-id", *NARROWING], name="messages_of_amount")
        ),
        migrations.AddIndex(
            "message",
            models.Index(
                fields=["subject_uuid", "-id", *NARROWING, "amount"], name="messages_of_subject_uuid"
            ),
        ),
        migrations.AddIndex(
            "message",
            models.Index(
                fields=["bank_account", "-id", *NARROWING, "amount"], name="messages_of_bank_account"
            ),
        ),
    ]
