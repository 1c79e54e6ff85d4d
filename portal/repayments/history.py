"""The history of a payment from its own dates, its changes of status, and messages about it, in order of time.

The service only reports a payment's current state. What its status was in earlier lists is saved, and messages say what
happened and when. A time that neither provides becomes an entry that says so.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

from django.utils import timezone

import servicing
from portal.messaging.models import Message
from portal.records.models import Repayment
from portal.records.repayments import RETURNED, answer_of
from portal.ui import wording
from servicing import RemoteTime
from servicing.values import calendar_day
from servicing.words import normal_word


@dataclass(frozen=True)
class HistoryEntry:
    """One event, or a missing time."""

    day: date
    at: datetime | None
    state: str
    icon: str
    text: str
    meta: str = ""
    is_dated: bool = True
    url: str = ""
    guessed_at: datetime | None = None
    """Its place within the day, if its time is uncertain."""

    @property
    def order(self) -> tuple[date, bool, float]:
        """The sort key: by day, entries with a time after those without."""
        at = self.at or self.guessed_at
        return self.day, at is not None, at.timestamp() if at else 0


class SeenStatus(NamedTuple):
    """A status in the lists of a payment, with the service's words, when it was first and when it was last seen."""

    status: str
    reason: str | None
    first_at: datetime
    last_at: datetime | None


def payment_history(repayment: Repayment | None, messages: Iterable[Message]) -> list[HistoryEntry]:
    """Build the history of a payment, oldest first."""
    events = sorted(messages, key=lambda message: message.recorded_at)
    is_listed = repayment is not None and repayment.last_listed_at is not None
    listed = repayment if is_listed else None
    latest = [event.repayment for event in events if event.repayment]
    latest += [answer_of(listed)] if listed else []
    entries = [*_own_days(latest[-1:]), *_from_messages(events)]
    entries += _from_lists(seen_statuses(listed), events) if listed else []
    return sorted(entries, key=lambda entry: entry.order)


def seen_statuses(repayment: Repayment) -> list[SeenStatus]:
    """The statuses in the lists of a repayment, oldest first; the last one is current."""
    found, first_at = [], repayment.first_seen_at
    for change in repayment.statuses.all():
        found.append(SeenStatus(normal_word(change.old), change.old_reason, first_at, change.old_last_at))
        first_at = change.at
    reason = answer_of(repayment).error_description
    current = SeenStatus(normal_word(repayment.status), reason, first_at, repayment.last_listed_at)
    return [*found, current]


def _own_days(latest: Sequence[servicing.Repayment]) -> Iterator[HistoryEntry]:
    """The dates of the payment itself."""
    for repayment in latest:
        initiated = repayment.initiation_date
        moment = initiated.at if isinstance(initiated, RemoteTime) else None
        day = timezone.localdate(moment) if moment else initiated and calendar_day(str(initiated))
        if day:
            yield HistoryEntry(day, moment, "neutral", "send", "Initiated", "" if moment else str(initiated))
        if repayment.effective_date:
            yield HistoryEntry(repayment.effective_date, None, "neutral", "calendar-event", "Effective")
        if completed := calendar_day(repayment.completion_date):
            yield HistoryEntry(completed, None, "neutral", "circle-check", "Completed")


def _from_messages(events: Sequence[Message]) -> Iterator[HistoryEntry]:
    """Each message at its own time. A return without an earlier message of success adds a missing time."""
    statuses: set[str] = set()
    for event in events:
        status = normal_word(event.payment_status or event.event.rpartition(".")[2])
        if status == RETURNED and "SUCCEEDED" not in statuses:
            yield _missing_moment(event.local_day, event.recorded_at, "Succeeded before; time not on file")
        statuses.add(status)
        look, created = wording.status(status), event.created_at
        is_undelivered = bool(event.status) and wording.status(event.status).state == "bad"
        yield HistoryEntry(
            event.local_day,
            created.at if created else None,
            look.state,
            look.icon,
            f"Message: {look.word.lower()}",
            _sentences(
                event.repayment.error_description if event.repayment else "",
                "The message wasn’t delivered" if is_undelivered else "",
                created.text if created and created.at is None else "",
            ),
            url=event.get_absolute_url(),
            guessed_at=event.recorded_at,
        )


def _from_lists(seen: Sequence[SeenStatus], events: Sequence[Message]) -> Iterator[HistoryEntry]:
    """Each new status in the saved lists. The time of the change is missing unless a message has it."""
    statuses = {normal_word(event.payment_status) for event in events}
    first = seen[0]
    yield _reported(first, "First seen as")
    if first.status == RETURNED and not statuses & {"SUCCEEDED", RETURNED}:
        day = timezone.localdate(first.first_at)
        yield _missing_moment(day, first.first_at, "Succeeded before; time not provided")
    for before, after in pairwise(seen):
        since = f"Changed after {wording.clock(before.last_at)}; " if before.last_at else ""
        gap = f"{since}exact time not provided"
        yield _reported(after, "Then seen as", "" if after.status in statuses else gap)


def _missing_moment(day: date, before: datetime, text: str) -> HistoryEntry:
    at = before - timedelta(microseconds=1)
    return HistoryEntry(day, at, "warn", "help-circle", text, is_dated=False)


def _reported(seen: SeenStatus, words: str, gap: str = "") -> HistoryEntry:
    look = wording.status(seen.status or "unknown")
    day = timezone.localdate(seen.first_at)
    meta = _sentences(seen.reason, gap)
    return HistoryEntry(day, seen.first_at, look.state, look.icon, f"{words} {look.word.lower()}", meta)


def _sentences(*parts: str | None) -> str:
    return ". ".join(filter(None, parts))
