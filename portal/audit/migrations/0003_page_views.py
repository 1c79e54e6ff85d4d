"""Page views are rows of their own. Views of 1.0 are copied; their entries stay in the chain."""

import django.core.serializers.json
from django.db import migrations, models
from django.db.models import OuterRef, Subquery

ROLES = [
    ("viewer", "Viewer"),
    ("servicer", "Servicer"),
    ("supervisor", "Supervisor"),
    ("auditor", "Auditor"),
    ("admin", "Administrator"),
    ("system", "System"),
]
COPIED = {
    "actor_role": "actor_role",
    "request_id": "request_id",
    "page": "action",
    "subject_kind": "subject_kind",
    "subject_label": "subject_label",
    "borrower_uuid": "borrower_uuid",
    "detail": "detail",
}


def copy_entries(apps, schema_editor):  # type: ignore[no-untyped-def]
    entry = apps.get_model("audit", "Entry").objects.filter(pk=OuterRef("entry_id"))
    apps.get_model("audit", "PageView").objects.update(
        **{name: Subquery(entry.values(column)[:1]) for name, column in COPIED.items()}
    )


def add(name: str, field: models.Field) -> migrations.AddField:  # type: ignore[type-arg]
    return migrations.AddField(model_name="pageview", name=name, field=field)


class Migration(migrations.Migration):
    dependencies = [("audit", "0002_save_id")]

    operations = [
        migrations.RenameModel(old_name="RecordView", new_name="PageView"),
        migrations.AlterModelTable(name="pageview", table=None),
        migrations.AlterModelOptions(name="pageview", options={"ordering": ["-last_at", "-id"]}),
        add("actor_role", models.CharField(blank=True, choices=ROLES, default="", max_length=20)),
        add(
            "request_id",
            models.CharField(blank=True, default="", help_text="Of the first view.", max_length=60),
        ),
        add("page", models.CharField(default="", max_length=60)),
        add("subject_kind", models.CharField(blank=True, default="", max_length=20)),
        add("subject_label", models.CharField(blank=True, default="", max_length=300)),
        add("borrower_uuid", models.CharField(blank=True, default="", max_length=64)),
        add("detail", models.JSONField(default=dict, encoder=django.core.serializers.json.DjangoJSONEncoder)),
        migrations.RunPython(copy_entries, migrations.RunPython.noop),
        migrations.RemoveField(model_name="pageview", name="entry"),
        migrations.AlterField(
            model_name="pageview", name="subject_uuid", field=models.CharField(max_length=64)
        ),
        *(
            migrations.AlterField(model_name="pageview", name=name, field=field)
            for name, field in {
                "actor_role": models.CharField(blank=True, choices=ROLES, max_length=20),
                "request_id": models.CharField(blank=True, help_text="Of the first view.", max_length=60),
                "page": models.CharField(max_length=60),
                "subject_kind": models.CharField(blank=True, max_length=20),
                "subject_label": models.CharField(blank=True, max_length=300),
                "borrower_uuid": models.CharField(blank=True, max_length=64),
            }.items()
        ),
        migrations.AddIndex(
            model_name="pageview",
            index=models.Index(fields=["subject_uuid", "actor_id", "first_at"], name="views_of_a_subject"),
        ),
        migrations.AddIndex(
            model_name="pageview",
            index=models.Index(fields=["borrower_uuid", "last_at"], name="views_of_a_borrower"),
        ),
        migrations.AddIndex(
            model_name="pageview",
            index=models.Index(fields=["actor_id", "last_at"], name="views_by_a_person"),
        ),
        migrations.AddIndex(
            model_name="pageview", index=models.Index(fields=["last_at"], name="latest_views")
        ),
    ]
