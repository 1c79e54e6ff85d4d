"""The history of a payment from its own dates, the saved lists it was in, and messages about it, in order of time.

The service only reports a payment's current state. Earlier copies are saved, and messages say what happened and when.
A time that neither provides becomes an entry that says so.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

from django.utils import timezone

from portal.messaging.models import Message
from portal.registry.models import Record, Snapshot
from portal.ui import wording
from servicing import RemoteTime, Repayment, codec
from servicing.values import calendar_day
from servicing.words import normal_word

MAX_ANSWERS = 50
RETURNED = "FAILED_AFTER_SUCCESS"


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


class SavedAnswer(NamedTuple):
    """One answer about the payment, and when it was last given."""

    repayment: Repayment
    at: datetime

    @property
    def status(self) -> str:
        return normal_word(self.repayment.status)


def payment_history(record: Record | None, messages: Iterable[Message]) -> list[HistoryEntry]:
    """Build the history of a payment, oldest first."""
    events = sorted(messages, key=lambda message: message.recorded_at)
    answers = saved_answers(record) if record else []
    latest = [*(event.repayment for event in events if event.repayment), *(one.repayment for one in answers)]
    entries = [*_own_days(latest[-1:]), *_from_messages(events), *_from_answers(answers, events)]
    return sorted(entries, key=lambda entry: entry.order)


def saved_answers(record: Record) -> list[SavedAnswer]:
    """Every saved answer about a repayment, oldest first; the last one is current."""
    earlier = Snapshot.objects.filter(answer__record=record)[:MAX_ANSWERS]
    answers = [(one.body, one.last_at) for one in earlier][::-1]
    if record.said and record.answer_at:
        answers.append((record.said.body, record.answer_at))
    return [SavedAnswer(codec.decode(Repayment, text), at) for text, at in answers]


def _own_days(latest: Sequence[Repayment]) -> Iterator[HistoryEntry]:
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


def _from_answers(answers: Sequence[SavedAnswer], events: Sequence[Message]) -> Iterator[HistoryEntry]:
    """Each new state in the saved lists. The time of the change is missing unless a message has it."""
    if not answers:
        return
    statuses = {normal_word(event.payment_status) for event in events}
    yield _reported(answers[0], "First seen as")
    if answers[0].status == RETURNED and not statuses & {"SUCCEEDED", RETURNED}:
        seen_at = answers[0].at
        yield _missing_moment(timezone.localdate(seen_at), seen_at, "Succeeded before; time not provided")
    for before, after in pairwise(answers):
        if before.status != after.status:
            gap = f"Changed after {wording.clock(before.at)}; exact time not provided"
            yield _reported(after, "Then seen as", "" if after.status in statuses else gap)


def _missing_moment(day: date, before: datetime, text: str) -> HistoryEntry:
    at = before - timedelta(microseconds=1)
    return HistoryEntry(day, at, "warn", "help-circle", text, is_dated=False)


def _reported(answer: SavedAnswer, words: str, gap: str = "") -> HistoryEntry:
    look = wording.status(answer.status or "unknown")
    meta = _sentences(answer.repayment.error_description, gap)
    day = timezone.localdate(answer.at)
    return HistoryEntry(day, answer.at, look.state, look.icon, f"{words} {look.word.lower()}", meta)


def _sentences(*parts: str | None) -> str:
    return ". ".join(filter(None, parts))
