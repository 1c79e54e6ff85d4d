"""The statements of a line as a list: by year, the newest first, with the months that have none.

Hides what is new to whom, which contents a document has had, and where a step back or forward leads.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import groupby

from django.urls import reverse

from portal.audit.models import Actor, Sighting
from portal.credit_lines.documents import prints_of
from portal.credit_lines.models import Fingerprint
from servicing import Statement
from servicing.sense import missing_months


@dataclass(frozen=True)
class Paper:
    """One statement of the list, or a month that has none."""

    day: date
    url: str = ""
    prints: Sequence[Fingerprint] = ()
    is_new: bool = False
    is_missing: bool = False

    @property
    def has_changed(self) -> bool:
        """Whether its content was not always the same."""
        return len(self.prints) > 1

    @property
    def last(self) -> Fingerprint | None:
        """The content it had when it was fetched last."""
        return max(self.prints, key=lambda one: one.last_at, default=None)


@dataclass(frozen=True)
class Papers:
    """The list, the chosen statement, and those beside it."""

    years: Sequence[tuple[int, Sequence[Paper]]]
    count: int
    missing: int
    undated: int
    chosen: Paper | None
    earlier: Paper | None
    later: Paper | None


def papers_of(actor: Actor, borrower_uuid: str, line_uuid: str, told: Statement, wanted: str) -> Papers:
    """The statements the service lists, and the chosen one: ``wanted`` is its day."""
    days = sorted({paper.billing_date for paper in told.statements if paper.billing_date and paper.url})
    prints, seen = prints_of(line_uuid, told.statements), _seen(actor, line_uuid, days)
    papers = [
        Paper(day, address(borrower_uuid, line_uuid, day), prints.get(day, ()), day not in seen)
        for day in days
    ]
    gaps = [Paper(month, is_missing=True) for month in missing_months(days)]
    index = next((index for index, day in enumerate(days) if day.isoformat() == wanted), None)
    return Papers(
        years=[(year, list(group)) for year, group in _by_year([*papers, *gaps])],
        count=len(papers),
        missing=len(gaps),
        undated=len(told.statements) - len(papers),
        chosen=None if index is None else papers[index],
        earlier=papers[-1] if papers and index is None else papers[index - 1] if index else None,
        later=papers[index + 1] if index is not None and index + 1 < len(papers) else None,
    )


def address(borrower_uuid: str, line_uuid: str, day: date) -> str:
    """Where a statement's document is shown."""
    return reverse("credit_lines:pdf", args=[borrower_uuid, line_uuid, day.isoformat()])


def subject(line_uuid: str, day: date) -> str:
    """What the audit calls a statement, which has no identifier of its own."""
    return f"{day.isoformat()}/{line_uuid}"[:64]


def _seen(actor: Actor, line_uuid: str, days: Sequence[date]) -> set[date]:
    """The days whose statement this person has looked at."""
    subjects = {subject(line_uuid, day): day for day in days}
    found = Sighting.objects.filter(actor_id=actor.id or 0, subject_uuid__in=subjects)
    return {subjects[one] for one in found.values_list("subject_uuid", flat=True)}


def _by_year(papers: Sequence[Paper]) -> Iterator[tuple[int, Iterator[Paper]]]:
    newest_first = sorted(papers, key=lambda paper: paper.day, reverse=True)
    return groupby(newest_first, key=lambda paper: paper.day.year)
