"""Fingerprints of statement PDFs."""

from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

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
                ("sha256", models.CharField(max_length=64)),
                ("size", models.PositiveBigIntegerField()),
                ("first_at", models.DateTimeField()),
                ("last_at", models.DateTimeField()),
            ],
            options={
                "ordering": ["first_at", "id"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("line_uuid", "billing_date", "sha256"), name="one_fingerprint_per_content"
                    )
                ],
            },
        ),
    ]
