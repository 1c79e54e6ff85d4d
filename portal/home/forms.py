"""Putting a line of the attention list aside."""

from datetime import date, timedelta

from django import forms
from django.utils import timezone

from portal.ui.forms import DayField, DayInput, StaffForm, TextField

LONGEST = 30


class SnoozeForm(StaffForm):
    """Up to which day, and why: colleagues read it."""

    until = DayField(label="Bring it back on", widget=DayInput)
    reason = TextField(label="Reason", max_length=200)

    def clean_until(self) -> date:
        day: date = self.cleaned_data["until"]
        today = timezone.localdate()
        if not today < day <= today + timedelta(days=LONGEST):
            raise forms.ValidationError(f"Choose a day from tomorrow up to {LONGEST} days from now.")
        return day
