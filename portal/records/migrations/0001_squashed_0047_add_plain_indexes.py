"""The tables of version 2.0 for a new database; one of an earlier version runs the migrations that it replaces."""

import django.db.models.deletion
import django.db.models.functions.text
import django.utils.timezone
from django.db import migrations, models

import portal.records.models
from portal.records.migration_steps import AddTextIndex, change_falling_indexes, create_extension


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ("registry", "0001_initial"),
        ("registry", "0002_figures_of_an_answer"),
        ("registry", "0003_indexes_of_figures"),
        ("registry", "0004_indexes_of_lists"),
        ("registry", "0005_past_due_changes"),
        ("registry", "0006_index_of_past_due"),
        ("registry", "0007_indexes_of_late_accounts"),
        ("registry", "0008_indexes_of_kinds"),
        ("registry", "0009_shared_count"),
        ("registry", "0010_payments_that_have_not_failed"),
        ("registry", "0011_status_of_payments_due"),
        ("registry", "0012_known_spelling"),
        ("registry", "0013_submitted_at"),
        ("registry", "0014_applications_in_order"),
        ("registry", "0015_due_since_the_copy"),
        ("registry", "0016_bank_accounts_of_repayments"),
        ("registry", "0017_folded_names"),
        ("registry", "0018_first_and_last_time"),
        ("registry", "0019_answers"),
        ("registry", "0020_move_answers"),
        ("registry", "0021_remove_moved_columns"),
        ("registry", "0022_outdated_figures"),
        ("registry", "0023_remove_versions_of_figures"),
        ("registry", "0024_days_of_answers"),
        ("registry", "0025_remove_records_of_lists"),
        ("registry", "0026_remove_indexes_of_lists"),
        ("registry", "0027_search_in_columns"),
        ("registry", "0028_repayments"),
        ("registry", "0029_move_repayments"),
        ("registry", "0030_indexes_of_repayments"),
        ("registry", "0031_remove_columns_of_repayments"),
        ("registry", "0032_fill_search_columns"),
        ("registry", "0033_indexes_of_search"),
        ("registry", "0034_key_people"),
        ("registry", "0035_move_key_people"),
        ("registry", "0036_indexes_of_key_people"),
        ("registry", "0037_borrowers"),
        ("registry", "0038_move_borrowers"),
        ("registry", "0039_indexes_of_borrowers"),
        ("registry", "0040_business_dates_of_texts"),
        ("registry", "0041_not_known_last"),
        ("registry", "0042_applications"),
        ("registry", "0043_move_applications"),
        ("registry", "0044_indexes_of_applications"),
        ("registry", "0045_accounts"),
        ("registry", "0046_plain_indexes"),
        ("registry", "0047_add_plain_indexes"),
    ]

    dependencies = []

    operations = [
        migrations.RunPython(create_extension, migrations.RunPython.noop),
        migrations.CreateModel(
            name="Answer",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("kind", models.CharField(choices=portal.records.models.kind_choices, max_length=16)),
                ("uuid", models.CharField(max_length=64)),
                (
                    "operation",
                    models.CharField(
                        blank=True,
                        help_text="The operation that said it; empty if from file or not known.",
                        max_length=60,
                    ),
                ),
                (
                    "source",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("service", "From the lending service"),
                            ("file", "From file"),
                            ("staff", "Added by staff"),
                        ],
                        max_length=10,
                    ),
                ),
                (
                    "first_at",
                    models.DateTimeField(
                        help_text="When this text was received first; null if version 1.0 saved it.",
                        null=True,
                    ),
                ),
                (
                    "last_at",
                    models.DateTimeField(
                        help_text="When this text was received last; null while it was only asked for.",
                        null=True,
                    ),
                ),
                (
                    "last_on",
                    models.DateField(
                        help_text="The business date of that, which a demo's days that pass don't change; null if not known.",
                        null=True,
                    ),
                ),
                (
                    "asked_at",
                    models.DateTimeField(help_text="When the service was last asked for it.", null=True),
                ),
                ("failed_at", models.DateTimeField(help_text="When asking failed last.", null=True)),
                ("failing_since", models.DateTimeField(help_text="Since when asking has failed.", null=True)),
                (
                    "failure",
                    models.TextField(blank=True, help_text="Why it failed last, in words for staff."),
                ),
                (
                    "first_on",
                    models.DateField(
                        help_text="The business date on which this text was received first; null if not known.",
                        null=True,
                    ),
                ),
                (
                    "body",
                    models.TextField(
                        blank=True,
                        help_text="As received, in canonical JSON; empty while it was only asked for.",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["kind", "last_at"], name="answers_by_last_at")],
                "constraints": [
                    models.UniqueConstraint(fields=("kind", "uuid"), name="one_answer_per_thing")
                ],
            },
        ),
        migrations.CreateModel(
            name="Account",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("kind", models.CharField(choices=portal.records.models.kind_choices, max_length=16)),
                ("uuid", models.CharField(max_length=64)),
                ("borrower_uuid", models.CharField(blank=True, max_length=64)),
                (
                    "owner_confirmed",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="Somebody chose the borrower, whatever the answer says.",
                    ),
                ),
                ("label", models.CharField(blank=True, max_length=300)),
                (
                    "answer_at",
                    models.DateTimeField(help_text="When its answer was received last.", null=True),
                ),
                ("answer_day", models.DateField(help_text="The business date of the answer.", null=True)),
                (
                    "checked_at",
                    models.DateTimeField(help_text="When the service last answered for it.", null=True),
                ),
                ("product", models.CharField(blank=True, max_length=40)),
                ("status", models.CharField(blank=True, max_length=40)),
                (
                    "is_closed",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="Whether that status is one of ``CLOSED_STATUSES``.",
                    ),
                ),
                ("state", models.CharField(blank=True, max_length=10)),
                ("amount", models.DecimalField(decimal_places=4, max_digits=20, null=True)),
                (
                    "past_due",
                    models.DecimalField(
                        decimal_places=4, help_text="Null: not known.", max_digits=20, null=True
                    ),
                ),
                ("next_due_on", models.DateField(null=True)),
                ("rate", models.DecimalField(decimal_places=4, max_digits=20, null=True)),
                ("is_past_due", models.BooleanField(default=False)),
                (
                    "needs_check",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="Figures in the answer of an account contradict each other.",
                    ),
                ),
                (
                    "figures_good_through",
                    models.DateField(
                        help_text="The last business date on which they hold; null until they are calculated, also by new rules.",
                        null=True,
                    ),
                ),
                (
                    "past_due_rank",
                    models.DecimalField(
                        decimal_places=4,
                        help_text="Orders what is past due, not known last.",
                        max_digits=20,
                        null=True,
                    ),
                ),
                (
                    "oldest_unpaid_due",
                    models.DateField(help_text="Days past due of a loan are counted from it.", null=True),
                ),
                (
                    "due_since_number",
                    models.PositiveIntegerField(
                        help_text="How many payments fell due since the copy; the service may know them as paid.",
                        null=True,
                    ),
                ),
                ("due_since_amount", models.DecimalField(decimal_places=4, max_digits=20, null=True)),
                ("due_since_on", models.DateField(help_text="The oldest of these due dates.", null=True)),
                ("has_no_schedule_yet", models.BooleanField(null=True)),
                (
                    "has_autopay",
                    models.BooleanField(help_text="Of a loan; null if its answer doesn't say.", null=True),
                ),
                (
                    "days_past_due",
                    models.IntegerField(help_text="Of a line, as reported in its answer.", null=True),
                ),
                ("due_amount", models.DecimalField(decimal_places=4, max_digits=20, null=True)),
                (
                    "is_partly_paid",
                    models.BooleanField(
                        help_text="A repayment of a loan succeeded after its oldest unpaid due date.",
                        null=True,
                    ),
                ),
                ("opened_on", models.DateField(help_text="Of a loan.", null=True)),
                ("remaining", models.DecimalField(decimal_places=4, max_digits=20, null=True)),
                ("principal", models.DecimalField(decimal_places=4, max_digits=20, null=True)),
                ("available", models.DecimalField(decimal_places=4, max_digits=20, null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("created_by", models.CharField(blank=True, max_length=300)),
                ("archived_at", models.DateTimeField(null=True)),
                ("search_text", models.TextField(blank=True)),
                (
                    "answer",
                    models.ForeignKey(
                        db_index=False,
                        help_text="What was said about it; null if nobody ever asked or answered. Its text is long.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="registry.answer",
                    ),
                ),
            ],
            options={
                "db_table": "registry_record",
            },
        ),
        migrations.CreateModel(
            name="Application",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("uuid", models.CharField(max_length=64)),
                (
                    "answer_at",
                    models.DateTimeField(help_text="When its answer was received last.", null=True),
                ),
                ("answer_day", models.DateField(help_text="The business date of the answer.", null=True)),
                (
                    "checked_at",
                    models.DateTimeField(help_text="When the service last answered for it.", null=True),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("created_by", models.CharField(blank=True, max_length=300)),
                ("archived_at", models.DateTimeField(null=True)),
                ("borrower_uuid", models.CharField(blank=True, max_length=64)),
                (
                    "owner_confirmed",
                    models.BooleanField(default=False, help_text="Somebody chose the borrower."),
                ),
                (
                    "label",
                    models.CharField(blank=True, help_text="Its name by staff or a file.", max_length=300),
                ),
                ("product", models.CharField(blank=True, max_length=40)),
                ("decision", models.CharField(blank=True, max_length=40)),
                (
                    "amount",
                    models.DecimalField(
                        decimal_places=4, help_text="As requested.", max_digits=20, null=True
                    ),
                ),
                (
                    "submitted_at",
                    models.DateTimeField(
                        help_text="When the service created it; a guess if the time zone is uncertain.",
                        null=True,
                    ),
                ),
                (
                    "search_text",
                    models.TextField(blank=True, help_text="Its label and the IDs of its offers."),
                ),
                (
                    "answer",
                    models.OneToOneField(
                        help_text="What was said about it; null if nobody ever asked or answered.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="registry.answer",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Borrower",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("uuid", models.CharField(max_length=64)),
                (
                    "answer_at",
                    models.DateTimeField(help_text="When its answer was received last.", null=True),
                ),
                ("answer_day", models.DateField(help_text="The business date of the answer.", null=True)),
                (
                    "checked_at",
                    models.DateTimeField(help_text="When the service last answered for it.", null=True),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("created_by", models.CharField(blank=True, max_length=300)),
                ("archived_at", models.DateTimeField(null=True)),
                (
                    "name",
                    models.CharField(
                        blank=True, help_text="As staff, a file or the service wrote it last.", max_length=300
                    ),
                ),
                ("state", models.CharField(blank=True, max_length=10)),
                ("city", models.CharField(blank=True, max_length=100)),
                ("phone", models.CharField(blank=True, max_length=20)),
                ("email", models.CharField(blank=True, max_length=254)),
                (
                    "folded_name",
                    models.CharField(
                        blank=True, help_text="The letters and digits of the name, folded.", max_length=300
                    ),
                ),
                ("search_text", models.TextField(blank=True)),
                ("type", models.CharField(blank=True, max_length=40)),
                ("legal_form", models.CharField(blank=True, max_length=40)),
                (
                    "past_due",
                    models.DecimalField(
                        decimal_places=4, help_text="Null: not known.", max_digits=20, null=True
                    ),
                ),
                (
                    "past_due_rank",
                    models.DecimalField(
                        decimal_places=4,
                        help_text="Orders what is past due, not known last.",
                        max_digits=20,
                        null=True,
                    ),
                ),
                ("is_past_due", models.BooleanField(default=False)),
                ("oldest_unpaid_on", models.DateField(help_text="Of its loans.", null=True)),
                (
                    "days_past_due",
                    models.IntegerField(help_text="The most of its lines, as reported.", null=True),
                ),
                (
                    "decision",
                    models.CharField(
                        blank=True, help_text="On its latest application, or that one is open.", max_length=40
                    ),
                ),
                (
                    "answer",
                    models.OneToOneField(
                        help_text="What was said about it; null if nobody ever asked or answered.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="registry.answer",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="KeyPerson",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("uuid", models.CharField(max_length=64)),
                (
                    "answer_at",
                    models.DateTimeField(help_text="When its answer was received last.", null=True),
                ),
                ("answer_day", models.DateField(help_text="The business date of the answer.", null=True)),
                (
                    "checked_at",
                    models.DateTimeField(help_text="When the service last answered for it.", null=True),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("created_by", models.CharField(blank=True, max_length=300)),
                ("archived_at", models.DateTimeField(null=True)),
                (
                    "name",
                    models.CharField(
                        blank=True, help_text="As staff, a file or the service wrote it last.", max_length=300
                    ),
                ),
                ("state", models.CharField(blank=True, max_length=10)),
                ("city", models.CharField(blank=True, max_length=100)),
                ("phone", models.CharField(blank=True, max_length=20)),
                ("email", models.CharField(blank=True, max_length=254)),
                (
                    "folded_name",
                    models.CharField(
                        blank=True, help_text="The letters and digits of the name, folded.", max_length=300
                    ),
                ),
                ("search_text", models.TextField(blank=True)),
                ("borrower_uuid", models.CharField(blank=True, max_length=64)),
                ("title", models.CharField(blank=True, max_length=40)),
                (
                    "answer",
                    models.OneToOneField(
                        help_text="What was said about it; null if nobody ever asked or answered.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="registry.answer",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="NameWord",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("word", models.CharField(max_length=60)),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("word",), name="one_row_per_word")],
            },
        ),
        migrations.CreateModel(
            name="PastDueChange",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("day", models.DateField(help_text="The business date.")),
                ("is_cured", models.BooleanField()),
                (
                    "record",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="past_due_changes",
                        to="registry.account",
                    ),
                ),
            ],
            options={
                "ordering": ["-day", "-id"],
            },
        ),
        migrations.CreateModel(
            name="Repayment",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("uuid", models.CharField(max_length=64)),
                ("borrower_uuid", models.CharField(blank=True, max_length=64)),
                ("product", models.CharField(blank=True, max_length=40)),
                ("payment_type", models.CharField(blank=True, max_length=40)),
                ("status", models.CharField(blank=True, max_length=40)),
                ("amount", models.DecimalField(decimal_places=4, max_digits=20, null=True)),
                ("effective_on", models.DateField(null=True)),
                ("has_failed", models.BooleanField(default=False)),
                (
                    "ach_id",
                    models.CharField(blank=True, help_text="Folded, as it is searched for.", max_length=64),
                ),
                ("ach_batch_id", models.CharField(blank=True, help_text="The same.", max_length=64)),
                ("bank_account", models.CharField(blank=True, help_text="The borrower's.", max_length=64)),
                (
                    "code",
                    models.CharField(
                        blank=True, help_text="The return code in the error description.", max_length=8
                    ),
                ),
                ("first_seen_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "last_listed_at",
                    models.DateTimeField(help_text="When a list contained it last.", null=True),
                ),
                (
                    "last_listed_on",
                    models.DateField(help_text="The business date of that; null if not known.", null=True),
                ),
                (
                    "returned_at",
                    models.DateTimeField(
                        help_text="When it was first seen as returned; null if it always was, or never.",
                        null=True,
                    ),
                ),
                ("updated_at", models.DateTimeField(auto_now=True)),
                (
                    "body",
                    models.TextField(
                        blank=True, help_text="Its entry of that list as received, in canonical JSON."
                    ),
                ),
                (
                    "account",
                    models.ForeignKey(
                        help_text="The loan or line; null if it isn't on file.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="repayments",
                        to="registry.account",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="RepaymentStatus",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("at", models.DateTimeField(help_text="When it was first seen with the new status.")),
                ("old", models.CharField(blank=True, max_length=40)),
                (
                    "old_last_at",
                    models.DateTimeField(help_text="When it was last seen with the old status.", null=True),
                ),
                (
                    "old_reason",
                    models.TextField(
                        blank=True, help_text="What the service said about the old status then."
                    ),
                ),
                ("new", models.CharField(blank=True, max_length=40)),
                (
                    "repayment",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="statuses",
                        to="registry.repayment",
                    ),
                ),
            ],
            options={
                "ordering": ["at", "id"],
            },
        ),
        migrations.CreateModel(
            name="Snapshot",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "first_at",
                    models.DateTimeField(help_text="When it was received first; null as above.", null=True),
                ),
                ("last_at", models.DateTimeField(help_text="When it was received last.")),
                (
                    "first_on",
                    models.DateField(
                        help_text="The business date of the first; null if not known.", null=True
                    ),
                ),
                (
                    "last_on",
                    models.DateField(
                        help_text="The business date of the last; null if not known.", null=True
                    ),
                ),
                (
                    "source",
                    models.CharField(
                        choices=[
                            ("service", "From the lending service"),
                            ("file", "From file"),
                            ("staff", "Added by staff"),
                        ],
                        max_length=10,
                    ),
                ),
                ("digest", models.CharField(max_length=64)),
                ("body", models.TextField()),
                (
                    "answer",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="snapshots",
                        to="registry.answer",
                    ),
                ),
            ],
            options={
                "ordering": ["-last_at", "-id"],
            },
        ),
        migrations.AddIndex(
            model_name="account",
            index=models.Index(fields=["borrower_uuid", "kind"], name="registry_re_borrowe_e60b2a_idx"),
        ),
        migrations.AddIndex(
            model_name="account",
            index=models.Index(fields=["kind", "past_due_rank", "id"], name="account_by_past_due_rank"),
        ),
        migrations.AddIndex(
            model_name="account",
            index=models.Index(fields=["kind", "-created_at", "-id"], name="account_by_created_at"),
        ),
        migrations.AddIndex(
            model_name="account",
            index=models.Index(fields=["kind", "-updated_at", "-id"], name="account_by_updated_at"),
        ),
        migrations.AddIndex(
            model_name="account",
            index=models.Index(fields=["kind", "next_due_on"], name="account_by_next_due_on"),
        ),
        migrations.AddIndex(
            model_name="account",
            index=models.Index(fields=["kind", "status"], name="account_by_status"),
        ),
        migrations.AddIndex(
            model_name="account",
            index=models.Index(fields=["kind", "product"], name="account_by_product"),
        ),
        migrations.AddIndex(
            model_name="account",
            index=models.Index(fields=["kind", "checked_at"], name="account_by_checked_at"),
        ),
        migrations.AddIndex(
            model_name="account",
            index=models.Index(fields=["kind", "amount"], name="account_by_amount"),
        ),
        migrations.AddIndex(
            model_name="account",
            index=models.Index(fields=["kind", "past_due"], name="account_by_past_due"),
        ),
        migrations.AddIndex(
            model_name="account",
            index=models.Index(fields=["kind", "due_amount"], name="account_by_due_amount"),
        ),
        migrations.AddIndex(
            model_name="account",
            index=models.Index(fields=["figures_good_through"], name="account_by_good_through"),
        ),
        migrations.AddIndex(
            model_name="account",
            index=models.Index(
                condition=models.Q(("oldest_unpaid_due__isnull", False)),
                fields=["oldest_unpaid_due"],
                name="account_by_oldest_unpaid_due",
            ),
        ),
        migrations.AddIndex(
            model_name="account",
            index=models.Index(
                condition=models.Q(("days_past_due__isnull", False)),
                fields=["days_past_due"],
                name="account_by_days_past_due",
            ),
        ),
        migrations.AddIndex(
            model_name="account",
            index=models.Index(
                condition=models.Q(("due_since_on__isnull", False)),
                fields=["due_since_on"],
                name="account_by_due_since_on",
            ),
        ),
        migrations.AddIndex(
            model_name="account",
            index=models.Index(
                condition=models.Q(("past_due_rank__isnull", False)),
                fields=["past_due_rank", "id"],
                name="account_past_due",
            ),
        ),
        migrations.AddIndex(
            model_name="account",
            index=models.Index(
                condition=models.Q(("needs_check", True)), fields=["kind", "id"], name="account_to_check"
            ),
        ),
        AddTextIndex(
            model_name="account",
            index=models.Index(
                condition=models.Q(("search_text", ""), _negated=True),
                fields=["kind", "-id", "search_text", "archived_at"],
                name="account_by_text",
            ),
        ),
        migrations.AddConstraint(
            model_name="account",
            constraint=models.UniqueConstraint(
                fields=("kind", "uuid"),
                name="one_record_per_uuid",
                opclasses=["varchar_ops", "varchar_pattern_ops"],
            ),
        ),
        migrations.AddConstraint(
            model_name="account",
            constraint=models.UniqueConstraint(
                condition=models.Q(("answer__isnull", False)),
                fields=("answer",),
                name="one_record_per_answer",
            ),
        ),
        migrations.AddIndex(
            model_name="application",
            index=models.Index(fields=["borrower_uuid"], name="application_by_borrower"),
        ),
        migrations.AddIndex(
            model_name="application",
            index=models.Index(fields=["submitted_at", "id"], name="application_by_submitted_at"),
        ),
        migrations.AddIndex(
            model_name="application",
            index=models.Index(fields=["-created_at", "-id"], name="application_by_created_at"),
        ),
        migrations.AddIndex(
            model_name="application",
            index=models.Index(fields=["product"], name="application_by_product"),
        ),
        migrations.AddIndex(
            model_name="application",
            index=models.Index(fields=["decision", "submitted_at", "id"], name="application_by_decision"),
        ),
        AddTextIndex(
            model_name="application",
            index=models.Index(
                condition=models.Q(("search_text", ""), _negated=True),
                fields=["-id", "search_text", "archived_at"],
                name="application_by_text",
            ),
        ),
        migrations.AddConstraint(
            model_name="application",
            constraint=models.UniqueConstraint(
                fields=("uuid",), name="one_application_per_uuid", opclasses=["varchar_pattern_ops"]
            ),
        ),
        migrations.AddIndex(
            model_name="borrower",
            index=models.Index(fields=["past_due_rank", "id"], name="borrower_by_past_due_rank"),
        ),
        migrations.AddIndex(
            model_name="borrower",
            index=models.Index(
                django.db.models.functions.text.Lower("name"), models.F("id"), name="borrower_by_name"
            ),
        ),
        migrations.AddIndex(
            model_name="borrower",
            index=models.Index(fields=["folded_name"], name="borrower_by_folded_name"),
        ),
        migrations.AddIndex(
            model_name="borrower",
            index=models.Index(fields=["-updated_at", "-id"], name="borrower_by_updated_at"),
        ),
        migrations.AddIndex(
            model_name="borrower",
            index=models.Index(fields=["-created_at", "-id"], name="borrower_by_created_at"),
        ),
        migrations.AddIndex(
            model_name="borrower",
            index=models.Index(fields=["past_due"], name="borrower_by_past_due"),
        ),
        migrations.AddIndex(
            model_name="borrower",
            index=models.Index(fields=["state"], name="borrower_by_state"),
        ),
        migrations.AddIndex(
            model_name="borrower",
            index=models.Index(fields=["legal_form"], name="borrower_by_legal_form"),
        ),
        migrations.AddIndex(
            model_name="borrower",
            index=models.Index(fields=["decision"], name="borrower_by_decision"),
        ),
        migrations.AddIndex(
            model_name="borrower",
            index=models.Index(fields=["checked_at"], name="borrower_by_checked_at"),
        ),
        migrations.AddIndex(
            model_name="borrower",
            index=models.Index(fields=["created_by"], name="borrower_by_created_by"),
        ),
        AddTextIndex(
            model_name="borrower",
            index=models.Index(
                condition=models.Q(("search_text", ""), _negated=True),
                fields=["-id", "search_text", "archived_at"],
                name="borrower_by_text",
            ),
        ),
        migrations.AddConstraint(
            model_name="borrower",
            constraint=models.UniqueConstraint(
                fields=("uuid",), name="one_borrower_per_uuid", opclasses=["varchar_pattern_ops"]
            ),
        ),
        migrations.AddIndex(
            model_name="keyperson",
            index=models.Index(fields=["borrower_uuid"], name="people_by_borrower"),
        ),
        migrations.AddIndex(
            model_name="keyperson",
            index=models.Index(fields=["folded_name"], name="people_by_folded_name"),
        ),
        migrations.AddIndex(
            model_name="keyperson",
            index=models.Index(fields=["-updated_at", "-id"], name="people_by_updated_at"),
        ),
        AddTextIndex(
            model_name="keyperson",
            index=models.Index(
                condition=models.Q(("search_text", ""), _negated=True),
                fields=["-id", "search_text", "archived_at"],
                name="people_by_text",
            ),
        ),
        migrations.AddConstraint(
            model_name="keyperson",
            constraint=models.UniqueConstraint(
                fields=("uuid",), name="one_key_person_per_uuid", opclasses=["varchar_pattern_ops"]
            ),
        ),
        migrations.AddIndex(
            model_name="pastduechange",
            index=models.Index(fields=["day", "is_cured", "record"], name="past_due_changes_by_day"),
        ),
        migrations.AddIndex(
            model_name="repayment",
            index=models.Index(fields=["effective_on", "id"], name="repayments_by_effective_on"),
        ),
        migrations.AddIndex(
            model_name="repayment",
            index=models.Index(fields=["status", "effective_on", "id"], name="repayments_by_status_and_day"),
        ),
        migrations.AddIndex(
            model_name="repayment",
            index=models.Index(
                fields=["has_failed", "effective_on", "id"], name="repayments_by_failure_and_day"
            ),
        ),
        migrations.AddIndex(
            model_name="repayment",
            index=models.Index(
                fields=["product", "effective_on", "id"], name="repayments_by_product_and_day"
            ),
        ),
        migrations.AddIndex(
            model_name="repayment",
            index=models.Index(
                fields=["payment_type", "effective_on", "id"], name="repayments_by_type_and_day"
            ),
        ),
        migrations.AddIndex(
            model_name="repayment",
            index=models.Index(fields=["amount", "id"], name="repayments_by_amount"),
        ),
        migrations.AddIndex(
            model_name="repayment",
            index=models.Index(fields=["first_seen_at"], name="repayments_by_first_seen_at"),
        ),
        migrations.AddIndex(
            model_name="repayment",
            index=models.Index(fields=["returned_at"], name="repayments_by_returned_at"),
        ),
        migrations.AddIndex(
            model_name="repayment",
            index=models.Index(fields=["borrower_uuid"], name="repayments_by_borrower"),
        ),
        migrations.AddIndex(
            model_name="repayment",
            index=models.Index(fields=["bank_account"], name="repayments_by_bank_account"),
        ),
        migrations.AddIndex(
            model_name="repayment",
            index=models.Index(fields=["ach_id"], name="repayments_by_ach_id"),
        ),
        migrations.AddIndex(
            model_name="repayment",
            index=models.Index(fields=["ach_batch_id"], name="repayments_by_ach_batch_id"),
        ),
        migrations.AddIndex(
            model_name="repayment",
            index=models.Index(fields=["code"], name="repayments_by_code"),
        ),
        migrations.AddConstraint(
            model_name="repayment",
            constraint=models.UniqueConstraint(
                fields=("uuid",), name="one_row_per_repayment", opclasses=["varchar_pattern_ops"]
            ),
        ),
        migrations.AddIndex(
            model_name="snapshot",
            index=models.Index(fields=["answer", "-last_at"], name="snapshots_of_answer"),
        ),
        migrations.RunPython(change_falling_indexes, migrations.RunPython.noop),
    ]
