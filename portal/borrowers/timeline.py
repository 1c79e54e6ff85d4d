"""Everything that happened around one borrower, in one order: changes, payments, statements, notes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import groupby

from django.utils import timezone

from portal.audit.models import Entry
from portal.audit.reading import Change, Line, lines
from portal.notes.models import Note
from portal.payments import account_of
from portal.readings import Reading
from portal.registry.models import Record
from portal.ui import wording
from servicing import Repayment, Statement

PAGE = 25
KINDS = {"payments": "Payments", "changes": "Changes", "statements": "Statements", "notes": "Notes"}


@dataclass(frozen=True)
class Event:
    """One thing that happened; ``at`` is a moment where one is known, ``day`` is always known."""

    kind: str
    day: date
    at: datetime | None
    state: str
    icon: str
    text: str
    meta: str = ""
    url: str = ""
    changes: Sequence[Change] = ()

    @property
    def order(self) -> tuple[date, bool, float]:
        """Newest first: by day, then what has a time, by its time."""
        return (self.day, self.at is not None, self.at.timestamp() if self.at else 0)


@dataclass(frozen=True)
class Timeline:
    """One page of events, grouped by day, and how many there are of each kind."""

    days: list[tuple[date, list[Event]]]
    shown: int
    total: int
    counts: list[tuple[str, str, int]]


def timeline(record: Record, readings: Sequence[Reading], *, kind: str = "", shown: int = PAGE) -> Timeline:
    """The newest ``shown`` events of a borrower, of one kind or of all."""
    events = sorted(_events(record, readings), key=lambda event: event.order, reverse=True)
    counts = [(name, label, sum(event.kind == name for event in events)) for name, label in KINDS.items()]
    chosen = [event for event in events if not kind or event.kind == kind]
    days = [(day, list(group)) for day, group in groupby(chosen[:shown], key=lambda event: event.day)]
    return Timeline(days, min(shown, len(chosen)), len(chosen), counts)


def _events(record: Record, readings: Sequence[Reading]) -> Iterator[Event]:
    entries = Entry.objects.filter(borrower_uuid=record.uuid).exclude(phase=Entry.Phase.ATTEMPT)
    # A look is no change, and a note stands there itself.
    told = entries.filter(sighting__isnull=True).exclude(action="notes.add")
    yield from map(_of_line, lines(told[:500]))
    yield from map(_of_note, Note.objects.filter(borrower_uuid=record.uuid)[:500])
    for reading in readings:
        for repayment in reading.repayments:
            if repayment.effective_date:
                yield _of_repayment(repayment, repayment.effective_date, reading.record)
        if isinstance(reading.answer, Statement):
            yield from _of_statements(reading.answer, reading.record)


def _of_line(line: Line) -> Event:
    entry = line.entry
    state = {"confirmed": "ok", "rejected": "bad", "unknown": "bad", "not_sent": "warn"}.get(
        entry.result, "neutral"
    )
    reason = f"Reason: “{entry.reason}”. " if entry.reason else ""
    return Event(
        kind="changes",
        day=timezone.localdate(entry.at),
        at=entry.at,
        state=state,
        icon="help-circle" if entry.result == "unknown" else "pencil",
        text=f"{entry.actor_name} {line.sentence}",
        meta=f"{reason}{entry.request_id}",
        changes=line.changes,
    )


def _of_note(note: Note) -> Event:
    return Event(
        kind="notes",
        day=timezone.localdate(note.created_at),
        at=note.created_at,
        state="neutral",
        icon="sticker-2",
        text=f"“{note.text}”",
        meta=f"Note by {note.author_name}",
    )


def _of_repayment(repayment: Repayment, day: date, record: Record) -> Event:
    look, account = wording.status(repayment.status or "unknown"), account_of(record)
    named = f"{account.get_kind_display()} {account.uuid[:8]}"
    return Event(
        kind="payments",
        day=day,
        at=None,
        state=look.state,
        icon=look.icon,
        text=f"Repayment of {wording.money(repayment.amount) or 'an amount that was not told'}: {look.word.lower()}",
        meta=f"{named}. {repayment.error_description}" if repayment.error_description else named,
        url=account.get_absolute_url(),
    )


def _of_statements(statement: Statement, record: Record) -> Iterator[Event]:
    for document in statement.statements:
        if document.billing_date:
            yield Event(
                kind="statements",
                day=document.billing_date,
                at=None,
                state="neutral",
                icon="file-text",
                text=f"Statement of line {record.uuid[:8]}",
                url=record.get_absolute_url(),
            )
