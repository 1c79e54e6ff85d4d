"""The book on each day."""

from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="BookDay",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("day", models.DateField(unique=True)),
                ("written_at", models.DateTimeField(auto_now_add=True)),
                (
                    "not_certain",
                    models.PositiveIntegerField(
                        help_text="Accounts that can't be told; with any, the day is a gap."
                    ),
                ),
                ("oldest_answer_on", models.DateField(null=True)),
                (
                    "has_lines",
                    models.BooleanField(
                        default=False, help_text="Whether a line had a copy, or there is none."
                    ),
                ),
                ("roll_since", models.DateField(help_text="The day with which its roll begins.", null=True)),
                (
                    "returned",
                    models.DecimalField(
                        decimal_places=4,
                        help_text="Payments reported as returned on this day.",
                        max_digits=20,
                        null=True,
                    ),
                ),
                ("returned_number", models.PositiveIntegerField(default=0)),
            ],
        ),
        migrations.CreateModel(
            name="ReturnedPayment",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("day", models.DateField(db_index=True)),
                ("kind", models.CharField(blank=True, max_length=16)),
                (
                    "uuid",
                    models.CharField(blank=True, help_text="Its account, if that is on file.", max_length=64),
                ),
                ("repayment_uuid", models.CharField(max_length=64)),
                (
                    "amount",
                    models.DecimalField(
                        decimal_places=4, help_text="Null: not known.", max_digits=20, null=True
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Run",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("first_day", models.DateField()),
                ("last_day", models.DateField()),
                (
                    "last_key",
                    models.BigIntegerField(default=0, help_text="The last account whose states are written."),
                ),
            ],
        ),
        migrations.CreateModel(
            name="AccountState",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("kind", models.CharField(max_length=16)),
                ("uuid", models.CharField(max_length=64)),
                ("from_day", models.DateField()),
                ("to_day", models.DateField(help_text="The last day; null while it holds.", null=True)),
                (
                    "bucket",
                    models.CharField(
                        choices=[
                            ("current", "Current"),
                            ("due_since", "Due since the copy"),
                            ("days_1_29", "1–29 days"),
                            ("days_30_59", "30–59 days"),
                            ("days_60_89", "60–89 days"),
                            ("days_90", "90+ days"),
                            ("not_known", "Not known"),
                            ("closed", "Closed"),
                            ("not_certain", "Not certain"),
                        ],
                        max_length=12,
                    ),
                ),
                ("product", models.CharField(blank=True, max_length=40)),
                ("status", models.CharField(blank=True, max_length=40)),
                (
                    "owner_id",
                    models.BigIntegerField(help_text="The colleague who works on the account.", null=True),
                ),
                (
                    "past_due",
                    models.DecimalField(
                        decimal_places=4, help_text="Null: not known.", max_digits=20, null=True
                    ),
                ),
                (
                    "oldest_unpaid_on",
                    models.DateField(help_text="Days past due of a loan are counted from it.", null=True),
                ),
                (
                    "reported_days",
                    models.IntegerField(help_text="Days past due of a line, as reported.", null=True),
                ),
                ("due_since_amount", models.DecimalField(decimal_places=4, max_digits=20, null=True)),
                ("due_since_on", models.DateField(null=True)),
                ("principal", models.DecimalField(decimal_places=4, max_digits=20, null=True)),
                ("due_next_on", models.DateField(null=True)),
                ("due_next_amount", models.DecimalField(decimal_places=4, max_digits=20, null=True)),
                (
                    "first_answer_on",
                    models.DateField(help_text="The first day of the answers that say so.", null=True),
                ),
                ("last_answer_on", models.DateField(help_text="The last one.", null=True)),
                (
                    "answer_at",
                    models.DateTimeField(
                        help_text="When the text of the last one was received first.", null=True
                    ),
                ),
                (
                    "good_through",
                    models.DateField(help_text="The last day on which the same answer says the same."),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["bucket", "to_day", "from_day"], name="states_by_bucket"),
                    models.Index(fields=["to_day", "from_day"], name="states_by_day"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("kind", "uuid", "from_day"), name="one_state_of_an_account_per_day"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="BucketSum",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("day", models.DateField()),
                ("kind", models.CharField(max_length=16)),
                (
                    "bucket",
                    models.CharField(
                        choices=[
                            ("current", "Current"),
                            ("due_since", "Due since the copy"),
                            ("days_1_29", "1–29 days"),
                            ("days_30_59", "30–59 days"),
                            ("days_60_89", "60–89 days"),
                            ("days_90", "90+ days"),
                            ("not_known", "Not known"),
                            ("closed", "Closed"),
                            ("not_certain", "Not certain"),
                        ],
                        max_length=12,
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("principal", models.DecimalField(decimal_places=4, max_digits=20)),
                ("principal_known", models.PositiveIntegerField()),
                ("past_due", models.DecimalField(decimal_places=4, max_digits=20)),
                ("past_due_known", models.PositiveIntegerField()),
                ("due_since", models.DecimalField(decimal_places=4, max_digits=20)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("day", "kind", "bucket"), name="one_sum_per_bucket")
                ],
            },
        ),
        migrations.CreateModel(
            name="Correction",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("kind", models.CharField(max_length=16)),
                ("uuid", models.CharField(max_length=64)),
                ("first_day", models.DateField()),
                ("last_day", models.DateField()),
                ("seen_on", models.DateField(help_text="The day of that answer.")),
            ],
            options={
                "indexes": [models.Index(fields=["last_day", "first_day"], name="corrections_by_day")],
            },
        ),
        migrations.CreateModel(
            name="Due",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("kind", models.CharField(max_length=16)),
                ("uuid", models.CharField(max_length=64)),
                ("day", models.DateField()),
                (
                    "amount",
                    models.DecimalField(
                        decimal_places=4, help_text="Null: not known.", max_digits=20, null=True
                    ),
                ),
                ("paid", models.DecimalField(decimal_places=4, default=0, max_digits=20)),
            ],
            options={
                "indexes": [models.Index(fields=["day"], name="dues_by_day")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("kind", "uuid", "day"), name="one_due_per_account_and_day"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Expected",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "view",
                    models.CharField(
                        choices=[
                            ("scheduled", "Scheduled"),
                            ("unscheduled", "Due, unscheduled"),
                            ("promised", "Promised"),
                        ],
                        max_length=12,
                    ),
                ),
                ("kind", models.CharField(max_length=16)),
                ("uuid", models.CharField(max_length=64)),
                (
                    "subject",
                    models.CharField(
                        blank=True,
                        help_text="The scheduled repayment’s ID, or the promise’s key.",
                        max_length=64,
                    ),
                ),
                ("on", models.DateField(help_text="The day that it is expected for.")),
                ("amount", models.DecimalField(decimal_places=4, max_digits=20)),
                ("from_day", models.DateField()),
                ("to_day", models.DateField(help_text="The last day; null while it is expected.", null=True)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["uuid", "to_day"], name="expected_of_accounts"),
                    models.Index(fields=["on", "view"], name="expected_by_day"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Forecast",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("day", models.DateField(help_text="When it was forecast.")),
                ("on", models.DateField(db_index=True, help_text="The day that it is for.")),
                (
                    "scheduled",
                    models.DecimalField(
                        decimal_places=4, help_text="Payments that the service had scheduled.", max_digits=20
                    ),
                ),
                (
                    "unscheduled",
                    models.DecimalField(
                        decimal_places=4, help_text="Due, without a scheduled payment.", max_digits=20
                    ),
                ),
                ("promised", models.DecimalField(decimal_places=4, max_digits=20)),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("day", "on"), name="one_forecast_per_day")],
            },
        ),
        migrations.CreateModel(
            name="OwnerSum",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("day", models.DateField()),
                ("owner_id", models.BigIntegerField(null=True)),
                ("owner_name", models.CharField(blank=True, max_length=300)),
                ("number", models.PositiveIntegerField()),
                ("past_due", models.DecimalField(decimal_places=4, max_digits=20)),
                ("reached", models.PositiveIntegerField()),
                ("promised", models.PositiveIntegerField()),
                ("kept", models.PositiveIntegerField()),
                ("decided", models.PositiveIntegerField()),
                ("cured", models.PositiveIntegerField()),
            ],
            options={
                "indexes": [models.Index(fields=["day"], name="owner_sums_by_day")],
            },
        ),
        migrations.CreateModel(
            name="RollCell",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("day", models.DateField()),
                ("was", models.CharField(help_text="A bucket, or “new”.", max_length=12)),
                ("now", models.CharField(help_text="A bucket, or “archived”.", max_length=12)),
                ("number", models.PositiveIntegerField()),
                (
                    "before",
                    models.DecimalField(
                        decimal_places=4, help_text="Their principal on the first day.", max_digits=20
                    ),
                ),
                (
                    "principal",
                    models.DecimalField(
                        decimal_places=4, help_text="Their principal on the last day.", max_digits=20
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("day", "was", "now"), name="one_cell_of_a_roll")
                ],
            },
        ),
    ]
