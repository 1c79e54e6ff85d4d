"""Everything that happened with one borrower, in order: changes, payments, statements, notes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import groupby
from typing import ClassVar, NamedTuple

from django.utils import timezone

from portal.audit.models import Entry
from portal.audit.reading import VIEWS, EntryLine, entry_lines
from portal.gateway.reading import LiveCopy
from portal.notes.models import Note
from portal.records.changes import FieldChange
from portal.records.models import Account, Borrower, Kind
from portal.ui import wording
from servicing import Repayment, Statement

PAGE_EVENTS = 25
MAX_SOURCE_EVENTS = 500
KINDS = {"payments": "Payments", "changes": "Changes", "statements": "Statements", "notes": "Notes"}
STATES = {"confirmed": "ok", "rejected": "bad", "unknown": "bad", "not_sent": "warn"}


class Event(NamedTuple):
    """One event; ``day`` is always known, ``at`` is its time if known."""

    kind: str
    day: date
    at: datetime | None
    state: str
    icon: str
    text: str
    amount: str = ""
    meta: str = ""
    url: str = ""
    changes: Sequence[FieldChange] = ()

    @property
    def order(self) -> tuple[date, bool, float]:
        """Newest first: by day, then by time, with events without a time last."""
        return (self.day, self.at is not None, self.at.timestamp() if self.at else 0)


@dataclass(frozen=True)
class RepaymentEvent:
    """A repayment as an event. Most are only counted, so the words are built only when shown."""

    day: date
    repayment: Repayment
    account: Account
    kind: ClassVar[str] = "payments"

    @property
    def order(self) -> tuple[date, bool, float]:
        return (self.day, False, 0)

    @property
    def event(self) -> Event:
        repayment, look = self.repayment, wording.status(self.repayment.status or "unknown")
        meta = f"{Kind(self.account.kind).label} {self.account.uuid[:8]}"
        return Event(
            self.kind,
            self.day,
            None,
            look.state,
            look.icon,
            f"Repayment {look.word.lower()}",
            wording.money(repayment.amount) or "Amount not provided",
            f"{meta}. {repayment.error_description}" if repayment.error_description else meta,
            self.account.get_absolute_url(),
        )


@dataclass(frozen=True)
class Timeline:
    """One page of events, grouped by month, and the number of each kind."""

    months: list[tuple[date, list[Event]]]
    shown: int
    total: int
    counts: list[tuple[str, str, int]]


def timeline(record: Borrower, copies: Sequence[LiveCopy], *, kind: str, shown: int) -> Timeline:
    """Build the timeline: the newest ``shown`` events of a borrower, of one kind or of all."""
    events = sorted(_events(record, copies), key=lambda event: event.order, reverse=True)
    counts = [(name, label, sum(event.kind == name for event in events)) for name, label in KINDS.items()]
    chosen = [event for event in events if not kind or event.kind == kind]
    months = groupby(chosen[:shown], key=lambda event: event.day.replace(day=1))
    grouped = [
        (month, [one.event if isinstance(one, RepaymentEvent) else one for one in group])
        for month, group in months
    ]
    return Timeline(grouped, min(shown, len(chosen)), len(chosen), counts)


def _events(record: Borrower, copies: Sequence[LiveCopy]) -> Iterator[Event | RepaymentEvent]:
    entries = Entry.objects.filter(borrower_uuid=record.uuid).exclude(phase=Entry.Phase.ATTEMPT)
    # Page views are no changes, and notes have their own events.
    changes = entries.exclude(VIEWS).exclude(action="notes.add")
    yield from map(_change_event, entry_lines(changes[:MAX_SOURCE_EVENTS]))
    for note in Note.objects.filter(borrower_uuid=record.uuid)[:MAX_SOURCE_EVENTS]:
        day, meta = timezone.localdate(note.created_at), f"Note by {note.author_name}"
        yield Event("notes", day, note.created_at, "neutral", "sticker-2", f"“{note.text}”", meta=meta)
    for copy in copies:
        for repayment in copy.repayments:
            if repayment.effective_date:
                yield RepaymentEvent(repayment.effective_date, repayment, copy.record)
        if isinstance(copy.answer, Statement):
            text, url = f"Statement of line {copy.record.uuid[:8]}", copy.record.get_absolute_url()
            for document in copy.answer.statements:
                if billed := document.billing_date:
                    yield Event("statements", billed, None, "neutral", "file-text", text, url=url)


def _change_event(line: EntryLine) -> Event:
    entry = line.entry
    day, state = timezone.localdate(entry.at), STATES.get(entry.result, "neutral")
    icon = "help-circle" if entry.result == "unknown" else "pencil"
    reason = f"Reason: “{entry.reason}”. " if entry.reason else ""
    text, meta = f"{entry.actor_name} {line.sentence}", f"{reason}{entry.request_id}"
    return Event("changes", day, entry.at, state, icon, text, meta=meta, changes=line.changes)
