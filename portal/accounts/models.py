"""Staff accounts: Django's user plus a role and how the person likes the desk to look."""

import zoneinfo
from typing import Any

from django.contrib.auth.models import AbstractUser
from django.contrib.auth.models import UserManager as DjangoUserManager
from django.core.exceptions import ValidationError
from django.db import models

from portal.accounts.roles import Role


class UserManager(DjangoUserManager["User"]):
    """Creates accounts; a superuser is an administrator."""

    def create_superuser(
        self, username: str, email: str | None = None, password: str | None = None, **fields: Any
    ) -> "User":
        """Create an administrator (what ``manage.py createsuperuser`` calls)."""
        return super().create_superuser(username, email, password, **({"role": Role.ADMIN} | fields))


def check_zone(name: str) -> None:
    """Only a zone that this machine knows: every page of the person depends on it."""
    if name not in zoneinfo.available_timezones():
        raise ValidationError("There is no such time zone; use a name such as America/New_York.")


class User(AbstractUser):
    """A member of staff."""

    class Theme(models.TextChoices):
        AUTO = "auto", "As the system"
        LIGHT = "light", "Light"
        DARK = "dark", "Dark"

    class Density(models.TextChoices):
        COMFORTABLE = "comfortable", "Comfortable"
        COMPACT = "compact", "Compact"

    role = models.CharField(max_length=20, choices=Role.choices, default=Role.VIEWER)
    time_zone = models.CharField(
        max_length=50, blank=True, validators=[check_zone], help_text="Empty: the business time zone."
    )
    theme = models.CharField(max_length=10, choices=Theme.choices, default=Theme.AUTO)
    density = models.CharField(max_length=12, choices=Density.choices, default=Density.COMFORTABLE)
    shortcuts = models.BooleanField("keyboard shortcuts", default=True)
    list_columns = models.JSONField(
        default=dict, blank=True, editable=False, help_text="For a list the columns this person chose."
    )

    objects = UserManager()  # type: ignore[misc]

    def display_name(self) -> str:
        """The name others read: full name, else the sign-in name."""
        return self.get_full_name() or self.username
