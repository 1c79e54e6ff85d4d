"""A supervisor's word on a change."""

from typing import Any

from django import forms

from portal.ui.forms import StaffForm, TextField


class DecideForm(StaffForm):
    """Approve or refuse; a refusal says why."""

    nothing_happened = "Nothing was decided."

    comment = TextField(
        label="Comment",
        required=False,
        max_length=200,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="The maker reads it, and it is kept in the audit trail. Needed to refuse.",
    )

    def __init__(self, data: Any = None, *, approves: bool = True) -> None:
        super().__init__(data)
        self.approves = approves

    def clean_comment(self) -> str:
        text: str = self.cleaned_data["comment"]
        if not self.approves and not text:
            raise forms.ValidationError("Say why it is refused.")
        return text
