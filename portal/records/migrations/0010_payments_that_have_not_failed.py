"""Payments that succeeded or are still to come no longer count as failed because of a text about an error."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("registry", "0009_shared_count")]

    operations = [
        migrations.RunSQL(
            "UPDATE registry_record SET flagged = false WHERE kind = 'repayment' AND flagged"
            " AND upper(status) IN ('SUCCEEDED', 'SCHEDULED') AND upper(subtype) <> 'RETURNED'",
            migrations.RunSQL.noop,
        )
    ]
