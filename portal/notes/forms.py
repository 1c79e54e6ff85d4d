"""Writing a note or a follow-up."""

from datetime import date

from django import forms
from django.utils import timezone

from portal.ui.forms import DayField, StaffForm, TextField


class NoteForm(StaffForm):
    """A note, which may be pinned as a warning up to a day."""

    text = TextField(label="Note", max_length=2000, widget=forms.Textarea({"rows": 3}))
    pinned_until = DayField(label="Pin as a warning until", required=False)

    def clean_pinned_until(self) -> date | None:
        return not_in_the_past(self.cleaned_data["pinned_until"])


class FollowUpForm(StaffForm):
    """Something to do by a day."""

    title = TextField(label="What is to be done", max_length=200)
    due = DayField(label="By")

    def clean_due(self) -> date | None:
        return not_in_the_past(self.cleaned_data["due"])


def not_in_the_past(day: date | None) -> date | None:
    """A day from today on."""
    if day and day < timezone.localdate():
        raise forms.ValidationError("This day has passed; choose today or a later one.")
    return day
