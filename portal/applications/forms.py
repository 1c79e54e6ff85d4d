"""What staff type about applications: an amount, an ID, a reason."""

from collections.abc import Collection
from typing import Any

from django import forms

from portal.records.query import uuid_in
from portal.ui.forms import MoneyField, StaffForm, TextField, WriteForm


class SubmitForm(WriteForm):
    """The requested amount."""

    amount = MoneyField(label="Amount requested", help_text="US dollars")


class ConfirmForm(SubmitForm):
    """Confirms the amount; the button repeats it."""

    amount = MoneyField(widget=forms.HiddenInput)
    confirmed = forms.CharField(widget=forms.HiddenInput, initial="yes")


class OpenForm(StaffForm):
    """The ID of an application at the service."""

    nothing_happened = "Nothing was read."

    uuid = TextField(
        label="Line application ID",
        max_length=300,
        widget=forms.TextInput(
            attrs={"autocomplete": "off", "spellcheck": "false", "class": "sd-mono", "autofocus": True}
        ),
        help_text="Paste the ID; extra text is fine.",
    )

    def clean_uuid(self) -> str:
        text = str(self.cleaned_data["uuid"])
        if uuid := uuid_in(text):
            return uuid
        raise forms.ValidationError("No ID found. It looks like 3f2b8c1e-9d47-4a60-b1c5-7e8f90a2d364.")


class PreferForm(StaffForm):
    """The preferred offer, or none, with a reason."""

    nothing_happened = "Nothing was saved."

    offer = forms.CharField(widget=forms.HiddenInput, required=False, max_length=64)
    reason = TextField(label="Reason (internal)", max_length=200, widget=forms.TextInput({"autofocus": True}))

    def __init__(self, *args: Any, offers: Collection[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.offers = offers

    def clean_offer(self) -> str:
        uuid = str(self.cleaned_data["offer"])
        if uuid and uuid not in self.offers:
            raise forms.ValidationError(
                "This offer no longer exists. Reload the application and choose again."
            )
        return uuid
