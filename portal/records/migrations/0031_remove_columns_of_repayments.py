"""Removes the columns of records that only repayments had."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("registry", "0030_indexes_of_repayments")]

    operations = [
        migrations.RemoveIndex(model_name="record", name="registry_re_parent__4fe39a_idx"),
        migrations.RemoveField(model_name="record", name="parent_uuid"),
        migrations.RemoveField(model_name="record", name="bank_account"),
        migrations.AlterField(
            model_name="repayment",
            name="updated_at",
            field=models.DateTimeField(auto_now=True),
        ),
        migrations.AlterField(
            model_name="record",
            name="flagged",
            field=models.BooleanField(default=False, help_text="An account that is past due."),
        ),
        migrations.AlterField(
            model_name="record",
            name="key_date",
            field=models.DateField(help_text="Next due date of a loan or line.", null=True),
        ),
        migrations.AlterField(
            model_name="record",
            name="subtype",
            field=models.CharField(blank=True, help_text="Legal form of a borrower.", max_length=40),
        ),
    ]
