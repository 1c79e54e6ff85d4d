"""Once folded the search texts of saved messages again; 0007 writes them anew."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("messaging", "0004_readings")]

    operations = []
