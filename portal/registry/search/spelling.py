"""Finds names similar to a mistyped one by shared letters.

Hides which names are compared: those with a part that the typo left intact.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import combinations, product
from typing import Final

from django.db import connection

from portal.registry.models import Kind, Record
from portal.registry.query import MARK, Alternatives, Query
from portal.registry.search.find import backend_of
from portal.registry.search.texts import TRIGRAM
from portal.runtime.folding import fold

MAX_COMPARED: Final = 200
MAX_SUGGESTED: Final = 3
# With more words, only the longest are assumed to be mistyped.
MAX_MISTYPED: Final = 4
MAX_IN_PAIRS: Final = 3
# The share of typed letters that a name must have, in total and in most longer words.
MIN_SHARED: Final = 0.5
MIN_SHARED_OF_WORD: Final = 0.3
_WORD: Final = re.compile(r"\w+")


def similar_names(query: Query) -> list[Record]:
    """The borrowers, then the key people, with names most similar to the typed one."""
    words = _WORD.findall(fold(query.name))
    kinds = [kind for kind in (Kind.BORROWER, Kind.KEY_PERSON) if kind in query.kinds]
    for alternatives in filter(None, _intact_parts([word for word in words if len(word) > TRIGRAM])):
        matches = backend_of(connection).matching_keys(kinds, alternatives, MAX_COMPARED // len(kinds))
        found = Record.objects.filter(
            query.conditions, pk__in=[key for keys in matches.values() for key in keys]
        )
        names: dict[str, dict[int, str]] = {kind: {} for kind in kinds}
        for key, kind, label in found.order_by("-pk").values_list("pk", "kind", "label"):
            names[kind][key] = label
        if best := [key for kind in kinds for key in _most_similar(words, names[kind])][:MAX_SUGGESTED]:
            records = found.in_bulk(best)
            return [records[key] for key in best]
    return []


def _intact_parts(words: Sequence[str]) -> Iterator[Alternatives]:
    """Parts that names may contain: all words but one and half of that one, halves of two words, any word's ends."""
    mistyped = sorted(words, key=len, reverse=True)[:MAX_MISTYPED]
    halves = {word: _ends(word, max(TRIGRAM, len(word) // 2)) for word in mistyped}
    others = {word: tuple(other for other in words if other != word) for word in mistyped}
    yield tuple((*others[word], half) for word in mistyped for half in halves[word])
    pairs = combinations(mistyped[:MAX_IN_PAIRS], 2)
    yield tuple(pair for one, two in pairs for pair in product(halves[one], halves[two]))
    starts = ((f"{before}{word[:TRIGRAM]}",) for word in mistyped for before in (MARK, " "))
    yield (*starts, *((word[-TRIGRAM:],) for word in mistyped))


def _ends(word: str, length: int) -> tuple[str, str]:
    return word[:length], word[-length:]


def _most_similar(words: Sequence[str], names: dict[int, str]) -> list[int]:
    """The keys of names that share enough with the words, most similar first."""
    longer = [_letters(word) for word in words if len(word) > TRIGRAM]
    typed = set().union(*map(_letters, words))
    likeness = {}
    for key, name in names.items():
        letters = set().union(*map(_letters, _WORD.findall(fold(name))))
        shared = len(typed & letters)
        unlike = sum(len(word & letters) < MIN_SHARED_OF_WORD * len(word) for word in longer)
        if shared >= MIN_SHARED * len(typed) and unlike <= (len(longer) - 1) // 2:
            likeness[key] = shared / len(typed | letters)
    return sorted(likeness, key=likeness.__getitem__, reverse=True)[:MAX_SUGGESTED]


def _letters(word: str) -> set[str]:
    """A word's trigrams with its ends, and its sorted letters, which swapping two does not change."""
    padded = f"  {word} "
    return {padded[start : start + TRIGRAM] for start in range(len(word) + 1)} | {"".join(sorted(word))}
