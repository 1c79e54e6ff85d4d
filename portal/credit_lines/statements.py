"""The statements of a line by year, newest first, and the gaps between them.

Hides how one is addressed: by its billing date, and by its position if the service lists several for that date.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import groupby
from typing import Any, NamedTuple

from django.http import HttpRequest
from django.urls import reverse

from portal.audit.models import Actor, PageView
from portal.credit_lines.models import Fingerprint
from portal.records.models import Account
from portal.ui import wording
from portal.ui.query_strings import query_before
from servicing import Statement
from servicing.consistency import statement_gaps
from servicing.values import calendar_day


class StatementKey(NamedTuple):
    """Which statement of a line: its billing date, and its position among those of that date from 1."""

    day: date
    position: int = 1

    def __str__(self) -> str:
        """As in addresses: ``2026-03-15``, and ``2026-03-15-2`` for the second one of that date."""
        return self.day.isoformat() + (f"-{self.position}" if self.position > 1 else "")

    @classmethod
    def parse(cls, text: str) -> "StatementKey | None":
        """Read a key from an address; ``None`` unless it is written as above."""
        day = calendar_day(text[:10])
        position = text[11:] or "1"
        if day is None or not (position.isascii() and position.isdecimal() and len(position) < 5):
            return None
        key = cls(day, int(position))
        return key if str(key) == text else None

    @property
    def words(self) -> str:
        return f"{wording.day(self.day)}{f', document {self.position}' if self.position > 1 else ''}"

    def audit_uuid(self, line_uuid: str) -> str:
        """Identify a statement in the audit trail; it has no ID of its own."""
        return f"{self}/{line_uuid}"[:64]


def statements_by_key(line: Statement) -> dict[StatementKey, str]:
    """The link of each statement with a date and a link, by date, and for one date in the service's order."""
    links: dict[date, list[str]] = {}
    for paper in line.statements:
        if paper.billing_date and paper.url:
            links.setdefault(paper.billing_date, []).append(paper.url)
    return {
        StatementKey(day, position): url
        for day, urls in sorted(links.items())
        for position, url in enumerate(urls, 1)
    }


@dataclass(frozen=True)
class StatementEntry:
    key: StatementKey
    words: str
    url: str
    """The address of the document."""
    link: str
    """The query string that opens it beside the list."""
    fingerprints: Sequence[Fingerprint]
    is_new: bool
    """Whether it is the newest one and this person hasn't opened it."""
    problem: Any = None
    """Why it can't be opened, if that is known: ``words`` and ``can_retry``."""

    @property
    def day(self) -> date:
        return self.key.day

    @property
    def has_changed(self) -> bool:
        """Whether two downloads had different contents."""
        return len(self.fingerprints) > 1

    @property
    def last(self) -> Fingerprint | None:
        return max(self.fingerprints, key=lambda one: one.last_at, default=None)


@dataclass(frozen=True)
class StatementGap:
    """A longer time without a statement than usual."""

    earlier: date
    later: date

    @property
    def day(self) -> date:
        """Its middle, for its place in the list."""
        return self.earlier + (self.later - self.earlier) / 2


@dataclass(frozen=True)
class StatementList:
    """The list, the chosen statement, and its neighbors."""

    years: Sequence[tuple[int, Sequence[StatementEntry | StatementGap]]]
    count: int
    gaps: int
    undated: int
    chosen: StatementEntry | None
    earlier: StatementEntry | None
    later: StatementEntry | None
    newest: StatementEntry | None

    @property
    def words(self) -> str:
        """The number of statements, and what is wrong with the list."""
        words = f"{self.count} statement{'' if self.count == 1 else 's'}"
        if self.gaps:
            words += f", {self.gaps} gap{'' if self.gaps == 1 else 's'}"
        return f"{words}, {self.undated} without a date or link" if self.undated else words


def statement_list(
    request: HttpRequest, record: Account, line: Statement, problems: Mapping[StatementKey, Any]
) -> StatementList:
    """List the statements in the service's answer about a line, and the one that the address asks for."""
    line_uuid, query = record.uuid, query_before(request.GET, "statement")
    keys = list(statements_by_key(line))
    number = Counter(key.day for key in keys)
    fingerprints, viewed = _fingerprints(line_uuid), _viewed_keys(Actor.of(request), line_uuid, keys)
    entries = [
        StatementEntry(
            key,
            f"{wording.day(key.day)}, document {key.position}" if number[key.day] > 1 else key.words,
            reverse("credit_lines:pdf", args=[record.borrower_uuid, line_uuid, str(key)]),
            f"{query}statement={key}",
            fingerprints.get(key, ()),
            is_new=key == keys[-1] and key not in viewed,
            problem=problems.get(key),
        )
        for key in keys
    ]
    gaps = [StatementGap(*days) for days in statement_gaps(key.day for key in keys)]
    chosen = StatementKey.parse(request.GET.get("statement", ""))
    index = keys.index(chosen) if chosen in keys else len(keys)
    newest_first: list[StatementEntry | StatementGap] = [*reversed(entries), *gaps]
    newest_first.sort(key=lambda one: one.day, reverse=True)
    return StatementList(
        years=[(year, list(group)) for year, group in groupby(newest_first, lambda one: one.day.year)],
        count=len(entries),
        gaps=len(gaps),
        undated=len(line.statements) - len(entries),
        chosen=entries[index] if index < len(entries) else None,
        earlier=entries[index - 1] if index > 0 else None,
        later=entries[index + 1] if index + 1 < len(entries) else None,
        newest=entries[-1] if entries else None,
    )


def _fingerprints(line_uuid: str) -> dict[StatementKey, list[Fingerprint]]:
    """The fingerprints of a line's statements, oldest first."""
    found: dict[StatementKey, list[Fingerprint]] = {}
    for one in Fingerprint.objects.filter(line_uuid=line_uuid):
        found.setdefault(StatementKey(one.billing_date, one.position), []).append(one)
    return found


def _viewed_keys(actor: Actor, line_uuid: str, keys: Sequence[StatementKey]) -> set[StatementKey]:
    stored = {key.audit_uuid(line_uuid): key for key in keys}
    views = PageView.objects.filter(actor_id=actor.id or 0, subject_uuid__in=stored)
    return {stored[uuid] for uuid in views.values_list("subject_uuid", flat=True)}
