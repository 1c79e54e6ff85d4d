"""Entries as people read them: sentences with the fields that changed, pages of them, and the neighbours of one.

Hides that what a write changed stands with its attempt, while its outcome is what is read.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

from django.core.paginator import Paginator
from django.db.models import QuerySet

from portal.audit.models import Entry, Sighting
from portal.audit.sentences import field_words, sentence

# Further than this nobody pages, and counting would be the slowest part.
COUNTED = 10_000
BATCH = 500


@dataclass(frozen=True)
class Change:
    """One field before and after."""

    label: str
    old: str
    new: str


@dataclass(frozen=True)
class Line:
    """One entry as a line of a list."""

    entry: Entry
    sentence: str
    changes: Sequence[Change]
    looks: int
    """How often somebody looked within ten minutes, where the entry is a look."""


class Pages(Paginator):  # type: ignore[type-arg]  # Django's own cannot be subscripted
    """Pages of entries with a count that stops where counting would be slow."""

    object_list: QuerySet[Entry]

    @cached_property
    def count(self) -> int:
        """How many, at most :data:`COUNTED`."""
        return self.object_list.order_by()[:COUNTED].count()

    @property
    def words(self) -> str:
        """The same as it is shown."""
        return f"{self.count:,}{'+' if self.count >= COUNTED else ''}"


def lines(entries: Iterable[Entry]) -> list[Line]:
    """These entries as lines, with two more queries for all of them."""
    rows = list(entries)
    outcomes = [entry.intent_id for entry in rows if entry.phase == Entry.Phase.OUTCOME]
    attempts = Entry.objects.filter(intent_id__in=outcomes, phase=Entry.Phase.ATTEMPT).order_by()
    asked = dict(attempts.values_list("intent_id", "changes"))
    looks = dict(
        Sighting.objects.filter(entry__in=[entry.pk for entry in rows]).values_list("entry_id", "count")
    )
    return [_line(entry, entry.changes or asked.get(entry.intent_id, {}), looks) for entry in rows]


def streamed(entries: QuerySet[Entry]) -> Iterator[Line]:
    """Every entry as a line, a batch at a time."""
    left = entries.iterator(BATCH)
    while batch := list(islice(left, BATCH)):
        yield from lines(batch)


def history(kind: str, uuid: str) -> QuerySet[Entry]:
    """What happened to one record, of a borrower also to what it has; of a settled write the outcome alone."""
    named = {"borrower_uuid": uuid} if kind == "borrower" else {"subject_uuid": uuid}
    entries = Entry.objects.filter(**named)
    outcomes = entries.filter(phase=Entry.Phase.OUTCOME).order_by().values("intent_id")
    return entries.exclude(phase=Entry.Phase.ATTEMPT, intent_id__in=outcomes)


def neighbours(entry: Entry) -> tuple[Entry | None, Entry | None]:
    """The entries of the same object before and after this one."""
    if not entry.subject_uuid:
        return None, None
    same = Entry.objects.filter(subject_uuid=entry.subject_uuid)
    return same.filter(pk__lt=entry.pk).first(), same.filter(pk__gt=entry.pk).order_by("pk").first()


def _line(entry: Entry, changes: dict[str, Any], looks: dict[int, int]) -> Line:
    told = [Change(field_words(name), *_pair(pair)) for name, pair in changes.items()]
    return Line(entry, sentence(entry, list(changes)), told, looks.get(entry.pk, 0))


def _pair(pair: Any) -> tuple[str, str]:
    old, new = pair if isinstance(pair, list) and len(pair) == 2 else ("", pair)
    return _text(old), _text(new)


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
