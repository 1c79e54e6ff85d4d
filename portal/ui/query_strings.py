"""Query strings of lists: links that change one parameter, and active filters as chips."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache

from django.http import QueryDict

# Parameters of one visit, which don't affect what a list shows.
TRANSIENT_PARAMS = ("page", "choose", "payment")


@dataclass(frozen=True)
class Chip:
    """An active filter in words, and the query string without it."""

    label: str
    words: str
    remove: str
    is_phrase: bool = False
    """Whether its words say enough without the label."""

    def __str__(self) -> str:
        return self.words if self.is_phrase else f"{self.label}: {self.words}"


def query_string(state: QueryDict, transient: Collection[str] = ("page",), /, **changes: str | None) -> str:
    """The state with some changes, without empty values; ``transient`` parameters are dropped unless given."""
    result = QueryDict(mutable=True)
    for name, values in state.lists():
        if name not in transient and name not in changes and any(values):
            result.setlist(name, list(filter(None, values)))
    result.update({name: value for name, value in changes.items() if value})
    return f"?{result.urlencode()}"


def query_before(state: QueryDict, name: str) -> str:
    """The query string to which each of many links adds one parameter."""
    query = query_string(state, (name, "refresh"))
    return query if query == "?" else f"{query}&"


@lru_cache(256)
def canonical_query(query: str) -> str:
    """A query string without page and empty values, in a fixed order."""
    state, result = QueryDict(query.removeprefix("?")), QueryDict(mutable=True)
    for name in sorted(state):
        if name != "page" and (values := list(filter(None, state.getlist(name)))):
            result.setlist(name, values)
    return result.urlencode()
