"""A person's own preferences."""

import zoneinfo
from typing import Any

from django import forms
from django.contrib.auth.forms import AdminUserCreationForm, UserChangeForm

from portal.accounts.models import User
from portal.ui.forms import StaffForm
from portal.ui.guard import GuardedForm


class ProfileForm(StaffForm, forms.ModelForm):  # type: ignore[type-arg]
    """How pages address the person, and how they look."""

    time_zone = forms.ChoiceField(required=False)

    class Meta:
        model = User
        fields = ["preferred_name", "time_zone", "theme", "density", "shortcuts"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        zones = sorted(name for name in zoneinfo.available_timezones() if "/" in name)
        self.fields["time_zone"].choices = [("", "Business time zone"), *((zone, zone) for zone in zones)]  # type: ignore[attr-defined]


class ThemeForm(forms.ModelForm):  # type: ignore[type-arg]
    """Light, dark or as the system has it."""

    class Meta:
        model = User
        fields = ["theme"]


class StaffAddForm(GuardedForm, AdminUserCreationForm):  # type: ignore[type-arg]
    """A new account, in the admin."""


class StaffChangeForm(GuardedForm, UserChangeForm):  # type: ignore[type-arg]
    """An account, in the admin."""
