"""The number of items that need attention, as the worker counted them."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("registry", "0008_indexes_of_kinds"),
    ]

    operations = [
        migrations.CreateModel(
            name="SharedCount",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveIntegerField(null=True)),
                ("state", models.TextField(help_text="The state of accounts and payments that was counted.")),
                ("counted_at", models.DateTimeField(null=True)),
                (
                    "acts",
                    models.PositiveIntegerField(
                        default=0,
                        help_text="Actions so far. A count isn't saved if this changed while counting.",
                    ),
                ),
            ],
        ),
    ]
