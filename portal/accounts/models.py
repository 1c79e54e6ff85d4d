"""Staff accounts: Django's user with a role and preferences.

Hides that every change of an account sends a signal in its own transaction, however it is made, and that none may lose
the last active administrator.
"""

import zoneinfo
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.contrib.auth.models import AbstractUser
from django.contrib.auth.models import UserManager as DjangoUserManager
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import models, transaction
from django.utils import timezone

from portal.accounts.roles import Role
from portal.accounts.signals import staff_changed

PREFERENCES = frozenset({"preferred_name", "time_zone"})
RECORDED = [
    *("username", "first_name", "last_name", "email", "role", "is_active", "is_staff", "is_superuser"),
    *("password", *sorted(PREFERENCES)),
]
"""Fields whose changes are announced."""
RIGHTS = frozenset({"role", "is_active"})
"""Fields that make an active administrator."""


class LastAdministrator(ValidationError):
    """A change would leave no active administrator."""

    def __init__(self) -> None:
        super().__init__("This is the only active administrator. Make someone else an administrator first.")


@contextmanager
def keep_administrator() -> Iterator[None]:
    """Undo the changes made within, and raise :class:`LastAdministrator`, if they leave no active administrator."""
    with transaction.atomic():
        # Locked before any other account and always in this order, so that of two administrators who remove each
        # other's role one waits and then sees the other's change.
        locked = User.objects.administrators().select_for_update(no_key=True).order_by("pk")
        existed = bool(locked.values_list("pk"))
        yield
        if existed and not User.objects.administrators().exists():
            raise LastAdministrator


class UserQuerySet(models.QuerySet["User"]):
    """Accounts. Bulk changes are announced too, and keep the last administrator."""

    def administrators(self) -> "UserQuerySet":
        return self.filter(role=Role.ADMIN, is_active=True)

    def update(self, **values: Any) -> int:
        # A migration uses its own model, with the fields of its time.
        if self.model is not User or not set(values) & set(RECORDED):
            return super().update(**values)
        with keep_administrator() if RIGHTS & set(values) else transaction.atomic():
            before = {row["pk"]: row for row in self.select_for_update().values("pk", *RECORDED)}
            number = super().update(**values)
            for user in self.model.objects.filter(pk__in=before):
                user.announce_changes(before[user.pk])
        return number

    def bulk_create(self, objs: Any, *args: Any, **kwargs: Any) -> list["User"]:
        with keep_administrator():
            created = super().bulk_create(objs, *args, **kwargs)
            for user in created:
                user.announce_changes(None)
        return created

    def delete(self) -> tuple[int, dict[str, int]]:
        with keep_administrator():
            return super().delete()

    delete.alters_data = True  # type: ignore[attr-defined]
    delete.queryset_only = True  # type: ignore[attr-defined]


class UserManager(DjangoUserManager.from_queryset(UserQuerySet)):  # type: ignore[misc]
    """Creates accounts; a superuser is an administrator."""

    def create_superuser(
        self, username: str, email: str | None = None, password: str | None = None, **fields: Any
    ) -> "User":
        """Create an administrator (what ``manage.py createsuperuser`` calls); without a password for single sign-on.

        Raises ``ValidationError`` for a password that staff couldn't choose either.
        """
        if password is not None:
            try:
                validate_password(password, self.model(username=username, email=email or ""))
            except ValidationError as error:
                raise ValidationError(" ".join(error.messages)) from error
        user: User = self.create_user(username, email, password, **fields | {"role": Role.ADMIN})
        return user


def check_zone(name: str) -> None:
    """Accept only a time zone known to this machine, because every page of the person needs it."""
    if name not in zoneinfo.available_timezones():
        raise ValidationError("Unknown time zone. Use a name like America/New_York.")


class User(AbstractUser):
    """A member of staff."""

    class Theme(models.TextChoices):
        AUTO = "auto", "Match system"
        LIGHT = "light", "Light"
        DARK = "dark", "Dark"

    class Density(models.TextChoices):
        COMFORTABLE = "comfortable", "Comfortable"
        COMPACT = "compact", "Compact"

    preferred_name = models.CharField(
        max_length=60,
        blank=True,
        default="",
        db_default="",
        help_text="Shown on pages. The audit trail uses the first and last name.",
    )
    role = models.CharField(max_length=20, choices=Role.choices, default=Role.VIEWER)
    time_zone = models.CharField(
        max_length=50,
        blank=True,
        validators=[check_zone],
        help_text="Leave empty for the business time zone.",
    )
    theme = models.CharField(max_length=10, choices=Theme.choices, default=Theme.AUTO)
    density = models.CharField(max_length=12, choices=Density.choices, default=Density.COMFORTABLE)
    shortcuts = models.BooleanField("keyboard shortcuts", default=True)
    mail_approvals = models.BooleanField("approvals", default=False, db_default=False)
    mail_follow_ups = models.BooleanField("follow-ups due", default=False, db_default=False)
    mail_promises = models.BooleanField("promises due today", default=False, db_default=False)
    mail_digest = models.BooleanField("daily digest", default=False, db_default=False)
    list_columns = models.JSONField(
        default=dict, blank=True, editable=False, help_text="For a list the columns this person chose."
    )

    objects = UserManager()  # type: ignore[misc]

    _is_rehashing = False
    changed_by = ""
    """The command or task that changes this account, for the audit trail."""

    def display_name(self) -> str:
        """The full name, else the sign-in name."""
        return self.get_full_name() or self.username

    def audit_name(self) -> str:
        """The name in the audit trail, with the sign-in name for people who share a name."""
        name = self.get_full_name()[: 300 - len(self.username) - 3]
        return f"{name} ({self.username})" if name else self.username

    def has_perm(self, perm: str, obj: Any = None) -> bool:
        """Return False: permissions come from the role alone, whatever Django's flags say."""
        return False

    def has_module_perms(self, app_label: str) -> bool:
        return False

    def check_password(self, raw_password: str | None) -> bool:
        """Check a password. Replacing an outdated hash on the way is not announced as a change."""
        self._is_rehashing = True
        try:
            return super().check_password(raw_password)
        finally:
            self._is_rehashing = False

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save, and announce the changes in the same transaction."""
        saved = kwargs.get("update_fields")
        if self._is_rehashing or (saved is not None and not set(saved) & set(RECORDED)):
            super().save(*args, **kwargs)
            return
        with keep_administrator() if saved is None or RIGHTS & set(saved) else transaction.atomic():
            rows = type(self)._base_manager.select_for_update().filter(pk=self.pk)
            before = rows.values(*RECORDED).first()
            super().save(*args, **kwargs)
            self.announce_changes(before)

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        with keep_administrator():
            return super().delete(*args, **kwargs)

    def announce_changes(self, before: dict[str, Any] | None) -> None:
        """Announce what differs from ``before`` (``None`` for a new account), without password hashes."""
        old = before or dict.fromkeys(RECORDED, "")
        after = type(self)._base_manager.values(*RECORDED).get(pk=self.pk)
        changes = {name: [old[name], after[name]] for name in RECORDED if old[name] != after[name]}
        if "password" in changes:
            changes["password"] = ["", "changed" if before else "set"]
        if changes:
            staff_changed.send(sender=User, user=self, changes=changes, created=before is None)


class OutgoingMail(models.Model):
    """One message to one address, sent at most once."""

    class State(models.TextChoices):
        WAITING = "waiting", "Waiting"
        SENDING = "sending", "Being sent"
        SENT = "sent", "Sent"
        UNKNOWN = "unknown", "May have arrived"
        REFUSED = "refused", "Refused"
        FAILED = "failed", "Given up"

    key = models.CharField(max_length=200, unique=True, help_text="What it is about, and who gets it.")
    address = models.EmailField()
    sealed = models.TextField(help_text="Subject and text, encrypted until it left.")
    state = models.CharField(max_length=10, choices=State.choices, default=State.WAITING)
    attempts = models.PositiveSmallIntegerField(default=0)
    problem = models.CharField(max_length=300, blank=True)
    created_at = models.DateTimeField(default=timezone.now, db_index=True)
    due_at = models.DateTimeField(default=timezone.now, help_text="When it is tried, or was claimed.")

    class Meta:
        ordering = ["id"]
        indexes = [models.Index(fields=["state", "due_at"], name="outgoing_mail_due")]

    def __str__(self) -> str:
        return f"{self.key}: {self.get_state_display()}"
