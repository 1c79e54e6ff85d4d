"""Naming the state of a list."""

from django import forms
from django.http import QueryDict

from portal.ui.forms import ChoiceField, StaffForm, TextField
from portal.ui.frame import AREAS
from servicing.masking import masked_text

LISTS = [
    (area.url_name, area.label)
    for areas in AREAS.values()
    for area in areas
    if area.url_name.endswith(":index")
]
# What belongs to one moment of a list, not to what it shows.
PASSING = ("page", "panel")


class SaveForm(StaffForm):
    """A name, and whether colleagues see it."""

    name = TextField(label="Name of the view", max_length=80)
    is_shared = forms.BooleanField(label="Share it with everybody", required=False)
    list = ChoiceField(choices=LISTS, widget=forms.HiddenInput)
    query = TextField(max_length=2000, required=False, widget=forms.HiddenInput)

    def clean_query(self) -> str:
        """Refused where it would keep, and perhaps share, what nothing here keeps."""
        query = self.cleaned_data["query"]
        values = [
            value for values in dict(QueryDict(query.removeprefix("?")).lists()).values() for value in values
        ]
        if any(masked_text(value) != value for value in values):
            raise forms.ValidationError(
                "The list is narrowed by what seems to be an SSN or EIN. Take that out first."
            )
        return state_of(query)


def state_of(query: str) -> str:
    """What of a query string is kept: everything but the page, in one order."""
    told = QueryDict(query.removeprefix("?"))
    kept = QueryDict(mutable=True)
    for name in sorted(told):
        if name not in PASSING and any(told.getlist(name)):
            kept.setlist(name, [value for value in told.getlist(name) if value])
    return kept.urlencode()
