"""The statements of a line by year, newest first, including months without one."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from itertools import groupby

from django.http import HttpRequest

from portal.audit.models import Actor, RecordView
from portal.credit_lines.models import Fingerprint
from portal.registry.models import Record
from portal.ui.addresses import page_url
from portal.ui.query_strings import query_before
from servicing import Statement
from servicing.consistency import missing_months


@dataclass(frozen=True)
class StatementEntry:
    """One statement, or a month without one."""

    day: date
    url: str = ""
    """The address of the document."""
    link: str = ""
    """The query string that opens it beside the list."""
    fingerprints: Sequence[Fingerprint] = ()
    is_new: bool = False
    """Whether it is the newest one and this person hasn't opened it."""
    is_missing: bool = False

    @property
    def has_changed(self) -> bool:
        """Whether two downloads had different contents."""
        return len(self.fingerprints) > 1

    @property
    def last(self) -> Fingerprint | None:
        """The fingerprint of the last download."""
        return max(self.fingerprints, key=lambda one: one.last_at, default=None)


@dataclass(frozen=True)
class StatementList:
    """The list, the chosen statement, and its neighbors."""

    years: Sequence[tuple[int, Sequence[StatementEntry]]]
    count: int
    missing: int
    undated: int
    chosen: StatementEntry | None
    earlier: StatementEntry | None
    later: StatementEntry | None
    newest: StatementEntry | None

    @property
    def words(self) -> str:
        """The number of statements, and what is wrong with the list."""
        words = f"{self.count} statement{'' if self.count == 1 else 's'}"
        if self.missing:
            words += f", {self.missing} month{'' if self.missing == 1 else 's'} missing"
        return f"{words}, {self.undated} without a date or link" if self.undated else words


def statement_list(request: HttpRequest, record: Record, line: Statement) -> StatementList:
    """List the statements in the service's answer about a line, and the one that the address asks for."""
    line_uuid, query = record.uuid, query_before(request.GET, "statement")
    days = sorted({one.billing_date for one in line.statements if one.billing_date and one.url})
    fingerprints, viewed = _fingerprints(line_uuid, days), _viewed_days(Actor.of(request), line_uuid, days)
    entries = [
        StatementEntry(
            day,
            page_url("credit_lines:pdf", record.borrower_uuid, line_uuid, day.isoformat()),
            f"{query}statement={day.isoformat()}",
            fingerprints.get(day, ()),
            is_new=day == days[-1] and day not in viewed,
        )
        for day in days
    ]
    gaps = [StatementEntry(month, is_missing=True) for month in missing_months(days)]
    chosen = request.GET.get("statement", "")
    index = next((index for index, day in enumerate(days) if day.isoformat() == chosen), len(days))
    newest_first = sorted([*entries, *gaps], key=lambda entry: entry.day, reverse=True)
    return StatementList(
        years=[(year, list(group)) for year, group in groupby(newest_first, lambda entry: entry.day.year)],
        count=len(entries),
        missing=len(gaps),
        undated=len(line.statements) - len(entries),
        chosen=entries[index] if index < len(entries) else None,
        earlier=entries[index - 1] if index > 0 else None,
        later=entries[index + 1] if index + 1 < len(entries) else None,
        newest=entries[-1] if entries else None,
    )


def statement_key(line_uuid: str, day: date) -> str:
    """Identify a statement in the audit trail; it has no ID of its own."""
    return f"{day.isoformat()}/{line_uuid}"[:64]


def _fingerprints(line_uuid: str, days: Sequence[date]) -> dict[date, list[Fingerprint]]:
    """The fingerprints of these statements, oldest first."""
    found: dict[date, list[Fingerprint]] = {}
    for one in Fingerprint.objects.filter(line_uuid=line_uuid, billing_date__in=days):
        found.setdefault(one.billing_date, []).append(one)
    return found


def _viewed_days(actor: Actor, line_uuid: str, days: Sequence[date]) -> set[date]:
    keys = {statement_key(line_uuid, day): day for day in days}
    views = RecordView.objects.filter(actor_id=actor.id or 0, subject_uuid__in=keys)
    return {keys[key] for key in views.values_list("subject_uuid", flat=True)}
