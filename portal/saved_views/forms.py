"""Naming the state of a list."""

from urllib.parse import unquote_plus

from django import forms
from django.http import QueryDict

from portal.ui.forms import ChoiceField, StaffForm, TextField
from portal.ui.frame import AREAS

LISTS = [
    (area.url_name, area.label)
    for areas in AREAS.values()
    for area in areas
    if area.url_name.endswith(":index")
]
# What belongs to one moment of a list, not to what it shows.
PASSING = ("page", "panel")


class QueryField(TextField):
    """A query string. It may hold what people typed into a filter."""

    readable = staticmethod(unquote_plus)
    refusal = "A filter seems to hold an SSN or EIN. Take it out first."


class SaveForm(StaffForm):
    """A name, and whether colleagues see it."""

    name = TextField(label="Name of the view", max_length=80)
    is_shared = forms.BooleanField(label="Share it with everybody", required=False)
    list = ChoiceField(choices=LISTS, widget=forms.HiddenInput)
    query = QueryField(max_length=2000, required=False, widget=forms.HiddenInput)

    def clean_query(self) -> str:
        return state_of(self.cleaned_data["query"])


def state_of(query: str) -> str:
    """What of a query string is kept: everything but the page, in one order."""
    told = QueryDict(query.removeprefix("?"))
    kept = QueryDict(mutable=True)
    for name in sorted(told):
        if name not in PASSING and any(told.getlist(name)):
            kept.setlist(name, [value for value in told.getlist(name) if value])
    return kept.urlencode()
