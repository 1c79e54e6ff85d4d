"""The filters that the lending service itself applies to its message list."""

from typing import Any

from django import forms

SIZES = [(size, str(size)) for size in (25, 50, 100)]


class FilterForm(forms.Form):
    """Dates, event and page, as the interface has them."""

    start_date = forms.DateField(label="From", required=False, widget=forms.DateInput({"type": "date"}))
    end_date = forms.DateField(label="To", required=False, widget=forms.DateInput({"type": "date"}))
    event = forms.CharField(label="Event", required=False, max_length=100)
    limit = forms.TypedChoiceField(label="Rows", required=False, choices=SIZES, coerce=int, empty_value=None)

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        start, end = data.get("start_date"), data.get("end_date")
        if start and end and end < start:
            self.add_error("end_date", "The end lies before the start.")
        return data
