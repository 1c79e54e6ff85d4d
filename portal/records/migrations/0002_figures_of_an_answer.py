"""Columns that say from which answer, and by which rules, the figures of an account were made."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("registry", "0001_initial")]

    operations = [
        migrations.AddField(
            "record",
            "is_partly_paid",
            models.BooleanField(
                help_text="A repayment of a loan succeeded after its oldest unpaid due date.", null=True
            ),
        ),
        migrations.AddField(
            "record",
            "figures_version",
            models.SmallIntegerField(help_text="The version of the rules they follow.", null=True),
        ),
        migrations.AddField(
            "record",
            "figures_from",
            models.DateTimeField(help_text="The time of the answer that they were made from.", null=True),
        ),
        migrations.AddField("record", "opened_on", models.DateField(help_text="Of a loan.", null=True)),
    ]
