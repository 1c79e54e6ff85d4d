"""The tables of version 2.0 for a new database; one of an earlier version runs the migrations that it replaces."""

from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ("notes", "0001_initial"),
        ("notes", "0002_folded_text"),
    ]

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="FollowUp",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("borrower_uuid", models.CharField(db_index=True, max_length=64)),
                ("title", models.CharField(max_length=200)),
                ("due", models.DateField()),
                ("owner_id", models.BigIntegerField(db_index=True)),
                ("owner_name", models.CharField(max_length=300)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("done_at", models.DateTimeField(null=True)),
                ("done_by", models.CharField(blank=True, max_length=300)),
            ],
            options={
                "ordering": ["due", "id"],
            },
        ),
        migrations.CreateModel(
            name="Note",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("borrower_uuid", models.CharField(db_index=True, max_length=64)),
                ("subject_kind", models.CharField(max_length=16)),
                ("subject_uuid", models.CharField(db_index=True, max_length=64)),
                ("text", models.TextField()),
                ("folded_text", models.TextField(db_default="", editable=False)),
                ("author_id", models.BigIntegerField()),
                ("author_name", models.CharField(max_length=300)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "pinned_until",
                    models.DateField(help_text="Shown as a warning up to and including this day.", null=True),
                ),
            ],
            options={
                "ordering": ["-created_at", "-id"],
            },
        ),
    ]
