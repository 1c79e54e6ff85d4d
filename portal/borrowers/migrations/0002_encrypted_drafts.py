"""Drafts are stored encrypted, with their reports."""

from typing import Any

from django.db import migrations

from portal.accounts.encryption import EncryptedBinaryField, EncryptedField

FIELDS = ("data", "refusal", "asset_report", "asset_report_name")


def encrypt_drafts(apps: Any, _: Any) -> None:
    drafts = apps.get_model("borrowers", "Draft").objects
    for pk in list(drafts.values_list("pk", flat=True)):
        values = drafts.filter(pk=pk).values(*(f"plain_{name}" for name in FIELDS)).get()
        report = values["plain_asset_report"]
        values["plain_asset_report"] = None if report is None else bytes(report)
        drafts.filter(pk=pk).update(**{name.removeprefix("plain_"): value for name, value in values.items()})


class Migration(migrations.Migration):
    dependencies = [("borrowers", "0001_initial")]

    operations = [
        *(migrations.RenameField("draft", name, f"plain_{name}") for name in FIELDS),
        migrations.AddField(
            "draft",
            "data",
            EncryptedField(default=dict, help_text="For each step the typed text of its forms."),
        ),
        migrations.AddField(
            "draft", "refusal", EncryptedField(default=dict, help_text="Why the last sending was refused.")
        ),
        migrations.AddField(
            "draft", "asset_report", EncryptedBinaryField(help_text="Compressed.", null=True)
        ),
        migrations.AddField("draft", "asset_report_name", EncryptedField(blank=True, default=str)),
        migrations.RunPython(encrypt_drafts),
        *(migrations.RemoveField("draft", f"plain_{name}") for name in FIELDS),
    ]
