"""The menu of a list's views: one's own, shared ones, and built-in ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote_plus

from django import forms
from django.db.models import Q

from portal.accounts.models import User
from portal.tables.models import SavedView, list_names
from portal.ui.forms import ChoiceField, StaffForm, TextField
from portal.ui.query_strings import canonical_query


class QueryField(TextField):
    """A query string, which may contain text typed into a filter."""

    readable = staticmethod(unquote_plus)
    refusal = "A filter may contain an SSN or EIN. Remove it first."


class SaveForm(StaffForm):
    """The name of a view, and whether colleagues see it."""

    name = TextField(label="Name of the view", max_length=80)
    is_shared = forms.BooleanField(label="Share with everyone", required=False)
    list = ChoiceField(choices=lambda: list_names().items(), widget=forms.HiddenInput)
    query = QueryField(max_length=2000, required=False, widget=forms.HiddenInput)

    def clean_query(self) -> str:
        return canonical_query(self.cleaned_data["query"])


@dataclass(frozen=True)
class Entry:
    """One view of the menu. Only one's own has a ``key``, with which it can be deleted."""

    name: str
    query: str
    is_current: bool
    key: int | None = None
    owner: str = ""


@dataclass(frozen=True)
class Menu:
    """The views of a list, and the current state, which can be saved as another."""

    list: str
    query: str
    mine: Sequence[Entry]
    shared: Sequence[Entry]
    built_in: Sequence[Entry]

    @property
    def current(self) -> Entry | None:
        return next((one for one in (*self.mine, *self.shared, *self.built_in) if one.is_current), None)


def saved_views_menu(user: User, name: str, query_string: str, built_in: Mapping[str, str]) -> Menu:
    state = canonical_query(query_string)
    saved = SavedView.objects.filter(Q(owner=user) | Q(is_shared=True), list=name)
    owners = {user.pk: user} | User.objects.in_bulk({view.owner_id for view in saved} - {user.pk})
    mine: list[Entry] = []
    shared: list[Entry] = []
    for view in saved:
        is_current, owner = view.query == state, owners[view.owner_id].display_name()
        if view.owner_id == user.pk:
            mine.append(Entry(view.name, view.query, is_current, view.pk, owner))
        else:
            shared.append(Entry(view.name, view.query, is_current, owner=owner))
    own = [Entry(label, query, canonical_query(query) == state) for label, query in built_in.items()]
    return Menu(name, state, mine, shared, own)
