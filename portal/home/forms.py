"""The form to snooze an item."""

from datetime import date, timedelta

from django import forms

from portal.core.business_date import business_date
from portal.ui.forms import DayField, NearDayInput, StaffForm, TextField

MAX_SNOOZE_DAYS = 30


class SnoozeForm(StaffForm):
    """The day on which the item comes back, and a reason that colleagues see."""

    until = DayField(label="Remind on", widget=NearDayInput({"autofocus": True}))
    reason = TextField(label="Reason", max_length=200)

    def clean_until(self) -> date:
        day: date = self.cleaned_data["until"]
        today = business_date()
        if not today < day <= today + timedelta(days=MAX_SNOOZE_DAYS):
            raise forms.ValidationError(f"Choose a day from tomorrow up to {MAX_SNOOZE_DAYS} days from now.")
        return day
