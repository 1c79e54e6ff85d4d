"""Finds the names that a mistyped one may mean, by comparing its words with those of all names."""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, reduce
from operator import and_, or_
from typing import Final

from django.db.models import Q

from portal.core.folding import fold
from portal.records.models import PEOPLE, Answered, Kind, NameWord
from portal.records.query import Query
from portal.records.rows import records_of
from portal.records.search import has_word, keys_of, with_text

MAX_COMPARED: Final = 200
MAX_SUGGESTED: Final = 3
# Shorter words are similar to too many others.
MIN_LENGTH: Final = 4
MAX_LENGTH: Final = 60
# With more words, only the longest are assumed to be mistyped.
MAX_MISTYPED: Final = 4
MAX_SIMILAR_WORDS: Final = 3
MIN_SIMILARITY_OF_WORDS: Final = 0.75
MIN_SIMILARITY_OF_NAMES: Final = 0.7
_WORD: Final = re.compile(r"\w+")


def words_of(name: str) -> list[str]:
    return [word for word in _WORD.findall(fold(name)) if MIN_LENGTH <= len(word) <= MAX_LENGTH]


def save_words(records: Iterable[Answered]) -> None:
    words = {word for record in records if record.kind in PEOPLE for word in words_of(record.label)}
    if words:  # In order, so that two requests never wait for each other.
        NameWord.objects.bulk_create(
            [NameWord(word=word) for word in sorted(words)], ignore_conflicts=True, batch_size=500
        )


def similar_names(query: Query) -> list[Answered]:
    """The borrowers, then the key people, with names most similar to the typed one."""
    similar = _similar_words(sorted(words_of(_spaced(query.name)), key=len, reverse=True)[:MAX_MISTYPED])
    if not similar:
        return []
    conditions = [reduce(or_, map(has_word, words)) for words in similar.values()]
    kinds = [kind for kind in PEOPLE if kind in query.kinds]
    typed = _WORD.findall(_spaced(query.name))
    for connect in (and_, or_):  # Names that have all of these words, else any.
        condition = with_text(reduce(connect, conditions))
        records = [one for kind in kinds for one in _most_similar(typed, _named(kind, query, condition))]
        if records:
            return records[:MAX_SUGGESTED]
    return []


def _spaced(name: str) -> str:
    """A typed name, folded, with a space for each dash, which may be a mistake too."""
    return fold(name.replace("-", " "))


def _similar_words(typed: Sequence[str]) -> Mapping[str, list[str]]:
    """The words of names that each typed word may mean, without the typed words that may mean none."""
    # A typo leaves the beginning or the end of its word.
    ends = {word: max(2, len(word) // 3) for word in typed}
    parts = [
        Q(word__startswith=word[:length]) | Q(word__endswith=word[-length:]) for word, length in ends.items()
    ]
    known = list(NameWord.objects.filter(reduce(or_, parts)).values_list("word", flat=True)) if parts else []
    similar = {
        word: difflib.get_close_matches(word, known, MAX_SIMILAR_WORDS, MIN_SIMILARITY_OF_WORDS)
        for word in typed
    }
    return {word: found for word, found in similar.items() if found}


def _named(kind: Kind, query: Query, condition: Q) -> list[Answered]:
    """The newest records of a kind whose text meets a condition."""
    newest = keys_of(kind, query, condition).order_by("-pk")[:MAX_COMPARED]
    return list(records_of(kind).filter(pk__in=list(newest)).order_by("-pk"))


def _most_similar(typed: Sequence[str], named: Sequence[Answered]) -> list[Answered]:
    """The records with names that are similar enough, most similar first."""
    rated = [(_similarity(typed, _WORD.findall(fold(one.label))), one) for one in named]
    similar = [(value, one) for value, one in rated if value >= MIN_SIMILARITY_OF_NAMES]
    similar.sort(key=lambda pair: (pair[0], -len(pair[1].label)), reverse=True)
    return [one for _, one in similar[:MAX_SUGGESTED]]


def _similarity(typed: Sequence[str], name: Sequence[str]) -> float:
    """The share of the typed letters that the words of a name have in the same order."""
    found = sum(len(one) * max((_ratio(one, other) for other in name), default=0) for one in typed)
    return found / sum(map(len, typed))


@lru_cache(10_000)
def _ratio(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, one, other, autojunk=False).ratio()
