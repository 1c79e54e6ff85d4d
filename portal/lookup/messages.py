"""Messages among the results of the search box: those of an identifier, of an amount, or that hold the words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from django.urls import reverse
from django.utils.http import urlencode

from portal.messaging.links import Row, rows_of
from portal.messaging.query import Found
from portal.registry.query import Query

SHORTEST: Final = 3


@dataclass(frozen=True)
class MessageHits:
    """The newest messages that match, and where all of them are."""

    asked: Mapping[str, Any]
    rows: Sequence[Row]

    @cached_property
    def total(self) -> int:
        return Found(self.asked).count

    @property
    def url(self) -> str:
        """The list of messages, narrowed alike."""
        return f"{reverse('messaging:index')}?{urlencode(self.asked)}"


def messages(query: Query, most: int) -> MessageHits | None:
    """The newest of them; nothing where none matches, or where the query is about records alone."""
    asked = _asked(query)
    found = Found(asked).page(most) if asked else []
    return MessageHits(asked, rows_of(found)) if found else None


def _asked(query: Query) -> dict[str, Any]:
    """The same question in the terms of the list of messages."""
    if query.conditions or query.is_limited:
        return {}
    if query.uuids:
        return {"id": query.uuids[0]}
    if query.amount is not None:
        return {"least": query.amount, "most": query.amount}
    if len(query.alternatives) != 1 and not query.read_as:
        return {}
    words = next(iter(query.alternatives), ())
    if not words or any(len(term) < SHORTEST or '"' in term for term in words):
        return {}
    # What is quoted is a word there; a brace in front would make JSON of the whole.
    return {"q": " ".join(f'"{term}"' if " " in term or term.startswith("{") else term for term in words)}
