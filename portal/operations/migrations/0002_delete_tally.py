"""Drops the counts of requests and calls: the metrics are gauges now."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("operations", "0001_initial")]

    operations = [migrations.DeleteModel(name="Tally")]
