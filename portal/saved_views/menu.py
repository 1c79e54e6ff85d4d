"""The menu of a list's views: one's own, the shared ones, and those that the list brings along."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Q

from portal.accounts.models import User
from portal.saved_views.forms import state_of
from portal.saved_views.models import SavedView


@dataclass(frozen=True)
class Entry:
    """One view of the menu; ``key`` is that of one's own, which can be deleted."""

    name: str
    query: str
    is_current: bool
    key: int | None = None
    owner: str = ""


@dataclass(frozen=True)
class Menu:
    """The views of a list, and the state that could become one more."""

    list: str
    query: str
    mine: Sequence[Entry]
    shared: Sequence[Entry]
    built_in: Sequence[Entry]

    @property
    def current(self) -> Entry | None:
        """The view that is on the page."""
        return next((one for one in (*self.mine, *self.shared, *self.built_in) if one.is_current), None)


def menu(user: User, name: str, query_string: str, built_in: Mapping[str, str]) -> Menu:
    """The menu of the list with this name in this state; ``built_in`` views are query strings by their names."""
    state = state_of(query_string)
    kept = SavedView.objects.filter(Q(owner=user) | Q(is_shared=True), list=name).select_related("owner")
    mine: list[Entry] = []
    shared: list[Entry] = []
    for one in kept:
        is_mine = one.owner_id == user.pk
        entry = Entry(
            one.name, one.query, one.query == state, one.pk if is_mine else None, one.owner.display_name()
        )
        (mine if is_mine else shared).append(entry)
    own = [Entry(label, query, state_of(query) == state) for label, query in built_in.items()]
    return Menu(name, state, mine, shared, own)
