"""The tables of version 2.0 for a new database; one of an earlier version runs the migrations that it replaces."""

from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ("credit_lines", "0001_initial"),
        ("credit_lines", "0002_statement_positions"),
    ]

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Fingerprint",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("line_uuid", models.CharField(max_length=64)),
                ("billing_date", models.DateField()),
                ("position", models.PositiveSmallIntegerField(default=1)),
                ("sha256", models.CharField(max_length=64)),
                ("size", models.PositiveBigIntegerField()),
                ("first_at", models.DateTimeField()),
                ("last_at", models.DateTimeField()),
            ],
            options={
                "ordering": ["first_at", "id"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("line_uuid", "billing_date", "position", "sha256"),
                        name="one_fingerprint_per_content",
                    )
                ],
            },
        ),
    ]
