"""Everything that happened with one borrower, in order: changes, payments, statements, notes."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import groupby
from typing import Any, ClassVar, NamedTuple

from django.utils import timezone

from portal.audit.models import Entry
from portal.audit.reading import VIEWS, EntryLine, entry_lines
from portal.gateway.reading import LiveCopy
from portal.notes.models import Note
from portal.records.changes import FieldChange
from portal.records.models import Account, Borrower, Kind
from portal.ui import wording
from servicing import Repayment, Statement
from servicing.schedules import total

PAGE_ROWS = 8
MAX_SOURCE_EVENTS = 500
MAX_RUN_DAYS = 24
"""The newest days of a run that open in place; the account's page has all."""
KINDS = {"payments": "Payments", "changes": "Changes", "statements": "Statements", "notes": "Notes"}
STATES = {"confirmed": "ok", "rejected": "bad", "unknown": "bad", "not_sent": "warn"}


class Event(NamedTuple):
    """One row: an event, or a run of them; ``day`` is always known, ``at`` is its time if known."""

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
    run: Sequence[date] = ()
    """The days of a run, newest first."""

    @property
    def order(self) -> tuple[date, bool, float]:
        """Newest first: by day, then by time, with events without a time last."""
        return (self.day, self.at is not None, self.at.timestamp() if self.at else 0)

    @property
    def when(self) -> str:
        """Its day or days, below the name of their month."""
        first = self.run[-1] if self.run else self.day
        if first.year == self.day.year:
            return wording.days(first, self.day)
        return f"{first:%b %Y} – {self.day:%b %Y}"

    @property
    def run_days(self) -> Sequence[date]:
        """The days that open in place."""
        return self.run[:MAX_RUN_DAYS]

    @property
    def earlier_days(self) -> int:
        """How many days don't open."""
        return len(self.run) - len(self.run_days)


@dataclass(frozen=True)
class AccountEvent(ABC):
    """What happened with an account. Most are only counted, so the words are built only when shown."""

    day: date
    account: Account
    kind: ClassVar[str]

    @property
    def order(self) -> tuple[date, bool, float]:
        return (self.day, False, 0)

    @property
    @abstractmethod
    def likeness(self) -> tuple[str, ...] | None:
        """What it shares with its neighbors in a run; None if it is never part of one."""

    @abstractmethod
    def event(self, run: Sequence[Any]) -> Event:
        """The row for a run that begins with it, or for it alone."""


@dataclass(frozen=True)
class RepaymentEvent(AccountEvent):
    repayment: Repayment
    kind: ClassVar[str] = "payments"

    @property
    def _status(self) -> str:
        return self.repayment.status or "unknown"

    @property
    def likeness(self) -> tuple[str, ...] | None:
        """Its status and amount, unless it failed."""
        has_failed = wording.status(self._status).state == "bad"
        return None if has_failed else (self._status, str(self.repayment.amount))

    def event(self, run: Sequence["RepaymentEvent"]) -> Event:
        look, amount = wording.status(self._status), wording.money(self.repayment.amount)
        text = f"Repayment {look.word.lower()}"
        if len(run) > 1:
            text = f"{len(run)} repayments{f' of {amount}' if amount else ''} {look.word.lower()}"
            amount = wording.money(total(one.repayment.amount for one in run))
        reason, of = self.repayment.error_description, Kind(self.account.kind).label
        account = f"{of} {self.account.uuid[:8]}"
        return Event(
            self.kind,
            self.day,
            None,
            look.state,
            look.icon,
            text,
            amount or "Amount not provided",
            f"{account}. {reason}" if reason else account,
            self.account.get_absolute_url(),
            run=days_of_run(run),
        )


@dataclass(frozen=True)
class StatementEvent(AccountEvent):
    kind: ClassVar[str] = "statements"

    @property
    def likeness(self) -> tuple[str, ...] | None:
        return ()

    def event(self, run: Sequence["StatementEvent"]) -> Event:
        what = f"{len(run)} statements" if len(run) > 1 else "Statement"
        text, url = f"{what} of line {self.account.uuid[:8]}", self.account.get_absolute_url()
        return Event(self.kind, self.day, None, "neutral", "file-text", text, url=url, run=days_of_run(run))


def days_of_run(run: Sequence[AccountEvent]) -> list[date]:
    """The days of a run; none of an event alone."""
    return [one.day for one in run] if len(run) > 1 else []


@dataclass(frozen=True)
class Timeline:
    """One page of rows, grouped by month, and the number of events of each kind."""

    months: list[tuple[date, list[Event]]]
    shown: int
    total: int
    """How many rows all its events make."""
    counts: list[tuple[str, str, int]]


def timeline(record: Borrower, copies: Sequence[LiveCopy], *, kind: str, shown: int) -> Timeline:
    """Build the timeline: the newest ``shown`` rows of a borrower, of one kind or of all."""
    events = sorted(_events(record, copies), key=lambda event: event.order, reverse=True)
    counts = [(name, label, sum(event.kind == name for event in events)) for name, label in KINDS.items()]
    rows = _in_runs(event for event in events if not kind or event.kind == kind)
    months = groupby(map(_row, rows[:shown]), key=lambda event: event.day.replace(day=1))
    return Timeline(
        [(month, list(group)) for month, group in months], min(shown, len(rows)), len(rows), counts
    )


def _in_runs(events: Iterable[Event | AccountEvent]) -> list[list[Any]]:
    """The events, with those of an account that are alike and follow one another as one run, at its newest."""
    runs: list[list[Any]] = []
    latest: dict[tuple[str, str], list[Any]] = {}
    for event in events:
        if isinstance(event, Event):
            runs.append([event])
            continue
        series = (event.kind, event.account.uuid)
        run = latest.get(series)
        if run and event.likeness is not None and event.likeness == run[0].likeness:
            run.append(event)
        else:
            latest[series] = [event]
            runs.append(latest[series])
    return runs


def _row(run: list[Any]) -> Event:
    first: Event | AccountEvent = run[0]
    return first if isinstance(first, Event) else first.event(run)


def _events(record: Borrower, copies: Sequence[LiveCopy]) -> Iterator[Event | AccountEvent]:
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
                yield RepaymentEvent(repayment.effective_date, copy.record, repayment)
        if isinstance(copy.answer, Statement):
            for document in copy.answer.statements:
                if billed := document.billing_date:
                    yield StatementEvent(billed, copy.record)


def _change_event(line: EntryLine) -> Event:
    entry = line.entry
    day, state = timezone.localdate(entry.at), STATES.get(entry.result, "neutral")
    icon = "help-circle" if entry.result == "unknown" else "pencil"
    reason = f"Reason: “{entry.reason}”. " if entry.reason else ""
    text, meta = f"{entry.actor_name} {line.sentence}", f"{reason}{entry.request_id}"
    return Event("changes", day, entry.at, state, icon, text, meta=meta, changes=line.changes)
