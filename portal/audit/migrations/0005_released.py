"""A write whose answer was lost may turn out not to have been carried out."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("audit", "0004_append_only"),
    ]

    operations = [
        migrations.AlterField(
            model_name="writeintent",
            name="state",
            field=models.CharField(
                choices=[
                    ("sending", "Sending"),
                    ("confirmed", "Confirmed"),
                    ("rejected", "Rejected"),
                    ("not_sent", "Not sent"),
                    ("unknown", "Outcome unknown"),
                    ("released", "Not carried out"),
                ],
                db_index=True,
                default="sending",
                max_length=10,
            ),
        ),
    ]
