"""The tables of version 2.0 for a new database; one of an earlier version runs the migrations that it replaces."""

import django.contrib.auth.validators
import django.utils.timezone
from django.db import migrations, models

import portal.accounts.models


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ("accounts", "0001_initial"),
        ("accounts", "0002_mail"),
        ("accounts", "0003_preferred_name"),
        ("accounts", "0004_refused_mail"),
    ]

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
    ]

    operations = [
        migrations.CreateModel(
            name="User",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("password", models.CharField(max_length=128, verbose_name="password")),
                ("last_login", models.DateTimeField(blank=True, null=True, verbose_name="last login")),
                (
                    "is_superuser",
                    models.BooleanField(
                        default=False,
                        help_text="Designates that this user has all permissions without explicitly assigning them.",
                        verbose_name="superuser status",
                    ),
                ),
                (
                    "username",
                    models.CharField(
                        error_messages={"unique": "A user with that username already exists."},
                        help_text="Required. 150 characters or fewer. Letters, digits and @/./+/-/_ only.",
                        max_length=150,
                        unique=True,
                        validators=[django.contrib.auth.validators.UnicodeUsernameValidator()],
                        verbose_name="username",
                    ),
                ),
                ("first_name", models.CharField(blank=True, max_length=150, verbose_name="first name")),
                ("last_name", models.CharField(blank=True, max_length=150, verbose_name="last name")),
                ("email", models.EmailField(blank=True, max_length=254, verbose_name="email address")),
                (
                    "is_staff",
                    models.BooleanField(
                        default=False,
                        help_text="Designates whether the user can log into this admin site.",
                        verbose_name="staff status",
                    ),
                ),
                (
                    "is_active",
                    models.BooleanField(
                        default=True,
                        help_text="Designates whether this user should be treated as active. Unselect this instead of deleting accounts.",
                        verbose_name="active",
                    ),
                ),
                (
                    "date_joined",
                    models.DateTimeField(default=django.utils.timezone.now, verbose_name="date joined"),
                ),
                (
                    "preferred_name",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Shown on pages. The audit trail uses the first and last name.",
                        max_length=60,
                    ),
                ),
                (
                    "role",
                    models.CharField(
                        choices=[
                            ("viewer", "Viewer"),
                            ("servicer", "Servicer"),
                            ("supervisor", "Supervisor"),
                            ("auditor", "Auditor"),
                            ("admin", "Administrator"),
                        ],
                        default="viewer",
                        max_length=20,
                    ),
                ),
                (
                    "time_zone",
                    models.CharField(
                        blank=True,
                        help_text="Leave empty for the business time zone.",
                        max_length=50,
                        validators=[portal.accounts.models.check_zone],
                    ),
                ),
                (
                    "theme",
                    models.CharField(
                        choices=[("auto", "Match system"), ("light", "Light"), ("dark", "Dark")],
                        default="auto",
                        max_length=10,
                    ),
                ),
                (
                    "density",
                    models.CharField(
                        choices=[("comfortable", "Comfortable"), ("compact", "Compact")],
                        default="comfortable",
                        max_length=12,
                    ),
                ),
                ("shortcuts", models.BooleanField(default=True, verbose_name="keyboard shortcuts")),
                (
                    "mail_approvals",
                    models.BooleanField(db_default=False, default=False, verbose_name="approvals"),
                ),
                (
                    "mail_follow_ups",
                    models.BooleanField(db_default=False, default=False, verbose_name="follow-ups due"),
                ),
                (
                    "mail_promises",
                    models.BooleanField(db_default=False, default=False, verbose_name="promises due today"),
                ),
                (
                    "mail_digest",
                    models.BooleanField(db_default=False, default=False, verbose_name="daily digest"),
                ),
                (
                    "list_columns",
                    models.JSONField(
                        blank=True,
                        default=dict,
                        editable=False,
                        help_text="For a list the columns this person chose.",
                    ),
                ),
                (
                    "groups",
                    models.ManyToManyField(
                        blank=True,
                        help_text="The groups this user belongs to. A user will get all permissions granted to each of their groups.",
                        related_name="user_set",
                        related_query_name="user",
                        to="auth.group",
                        verbose_name="groups",
                    ),
                ),
                (
                    "user_permissions",
                    models.ManyToManyField(
                        blank=True,
                        help_text="Specific permissions for this user.",
                        related_name="user_set",
                        related_query_name="user",
                        to="auth.permission",
                        verbose_name="user permissions",
                    ),
                ),
            ],
            options={
                "verbose_name": "user",
                "verbose_name_plural": "users",
                "abstract": False,
            },
            managers=[
                ("objects", portal.accounts.models.UserManager()),
            ],
        ),
        migrations.CreateModel(
            name="OutgoingMail",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "key",
                    models.CharField(
                        help_text="What it is about, and who gets it.", max_length=200, unique=True
                    ),
                ),
                ("address", models.EmailField(max_length=254)),
                ("sealed", models.TextField(help_text="Subject and text, encrypted until it left.")),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "Waiting"),
                            ("sending", "Being sent"),
                            ("sent", "Sent"),
                            ("unknown", "May have arrived"),
                            ("refused", "Refused"),
                            ("failed", "Given up"),
                        ],
                        default="waiting",
                        max_length=10,
                    ),
                ),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                ("problem", models.CharField(blank=True, max_length=300)),
                ("created_at", models.DateTimeField(db_index=True, default=django.utils.timezone.now)),
                (
                    "due_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now, help_text="When it is tried, or was claimed."
                    ),
                ),
            ],
            options={
                "ordering": ["id"],
                "indexes": [models.Index(fields=["state", "due_at"], name="outgoing_mail_due")],
            },
        ),
    ]
