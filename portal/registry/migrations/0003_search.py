"""Makes the search index, and the indexes that lists are sorted and filtered by."""

import django.db.models.functions.text
from django.db import migrations, models

from portal.registry.search.index import create, drop


class Migration(migrations.Migration):
    dependencies = [
        ("registry", "0002_panels"),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name="record",
            name="registry_re_kind_1282ff_idx",
        ),
        migrations.RemoveIndex(
            model_name="record",
            name="registry_re_kind_bf010e_idx",
        ),
        migrations.AddIndex(
            model_name="record",
            index=models.Index(
                condition=models.Q(("archived_at__isnull", True)),
                fields=["kind", "-updated_at", "-id"],
                name="records_by_updated_at",
            ),
        ),
        migrations.AddIndex(
            model_name="record",
            index=models.Index(
                condition=models.Q(("archived_at__isnull", True)),
                fields=["kind", "-created_at", "-id"],
                name="records_by_created_at",
            ),
        ),
        migrations.AddIndex(
            model_name="record",
            index=models.Index(
                condition=models.Q(("archived_at__isnull", True)),
                fields=["kind", "amount"],
                name="records_by_amount",
            ),
        ),
        migrations.AddIndex(
            model_name="record",
            index=models.Index(
                condition=models.Q(("archived_at__isnull", True)),
                fields=["kind", "entity", "-updated_at", "-id", "state", "status", "flagged"],
                name="records_by_entity",
            ),
        ),
        migrations.AddIndex(
            model_name="record",
            index=models.Index(
                condition=models.Q(("archived_at__isnull", True)),
                fields=["kind", "state", "-updated_at", "-id", "entity", "status", "flagged"],
                name="records_by_state",
            ),
        ),
        migrations.AddIndex(
            model_name="record",
            index=models.Index(
                condition=models.Q(("archived_at__isnull", True)),
                fields=["kind", "status", "-updated_at", "-id", "entity", "state", "flagged"],
                name="records_by_status",
            ),
        ),
        migrations.AddIndex(
            model_name="record",
            index=models.Index(
                condition=models.Q(("archived_at__isnull", True)),
                fields=["kind", "flagged", "-updated_at", "-id", "entity", "state", "status"],
                name="records_by_flagged",
            ),
        ),
        migrations.AddIndex(
            model_name="record",
            index=models.Index(
                models.F("kind"),
                django.db.models.functions.text.Lower("label"),
                models.F("id"),
                condition=models.Q(("kind", "borrower"), ("archived_at__isnull", True)),
                name="borrowers_by_label",
            ),
        ),
        migrations.AddIndex(
            model_name="record",
            index=models.Index(
                condition=models.Q(("kind", "borrower"), ("archived_at__isnull", True)),
                fields=["kind", "city", "id"],
                name="borrowers_by_city",
            ),
        ),
        migrations.AddIndex(
            model_name="record",
            index=models.Index(
                condition=models.Q(("kind", "borrower"), ("archived_at__isnull", True)),
                fields=["kind", "-past_due", "-id"],
                name="borrowers_by_past_due",
            ),
        ),
        migrations.AddIndex(
            model_name="record",
            index=models.Index(
                condition=models.Q(("kind", "borrower"), ("archived_at__isnull", True)),
                fields=["kind", "checked_at", "-updated_at", "-id"],
                name="borrowers_by_checked_at",
            ),
        ),
        migrations.AddIndex(
            model_name="record",
            index=models.Index(
                condition=models.Q(("kind", "borrower"), ("archived_at__isnull", True)),
                fields=["kind", "created_by", "-updated_at", "-id"],
                name="borrowers_by_created_by",
            ),
        ),
        migrations.RunPython(create, drop),
    ]
