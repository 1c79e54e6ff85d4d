"""The life of one payment from all that was told of it: its days, the lists it was read in, the messages about it.

The service only knows how a payment stands now. What this desk was told earlier is kept, and messages tell what
happened and when; together they give one order of things. What nobody told is a gap, and is named. It knows no area:
whoever has messages hands them over as :class:`Telling`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import pairwise

from django.utils import timezone

from portal.registry.models import Record
from portal.ui import wording
from servicing import RemoteTime, Repayment, codec
from servicing.values import calendar_day

STATES = 50
"""So many earlier answers are looked at."""


@dataclass(frozen=True)
class Telling:
    """A message about the payment, as plain values."""

    event: str
    status: str
    """The state of the payment in it."""
    at: datetime
    sent: str
    """Its time as the service wrote it."""
    url: str
    reason: str = ""
    delivery: str = ""
    """Whether the message itself reached its receiver."""
    payload: Repayment | None = None


@dataclass(frozen=True)
class Step:
    """One thing that is known to have happened, or known not to be known."""

    day: date
    at: datetime | None
    state: str
    icon: str
    text: str
    meta: str = ""
    is_dated: bool = True
    url: str = ""

    @property
    def order(self) -> tuple[date, bool, float]:
        """By day; what has a time after what has none."""
        return self.day, self.at is not None, self.at.timestamp() if self.at else 0


@dataclass(frozen=True)
class Told:
    """One answer about the payment, and when it was given last."""

    repayment: Repayment
    at: datetime

    @property
    def status(self) -> str:
        return (self.repayment.status or "").upper()


def life(record: Record | None, tellings: Iterable[Telling] = ()) -> list[Step]:
    """What is known of a payment, the oldest first."""
    messages = sorted(tellings, key=lambda telling: telling.at)
    answers = answers_of(record) if record else []
    latest = (
        answers[-1].repayment if answers else next((m.payload for m in reversed(messages) if m.payload), None)
    )
    steps = [*(_days(latest) if latest else ()), *_messages(messages), *_states(answers, messages)]
    return sorted(steps, key=lambda step: step.order)


def answers_of(record: Record) -> list[Told]:
    """Every answer of a list that is kept, the oldest first; the last is how the payment stands."""
    kept = [(one.answer, one.at) for one in record.snapshots.all()[:STATES]][::-1]
    if record.answer and record.answer_at:
        kept.append((record.answer, record.answer_at))
    return [Told(codec.decode(Repayment, answer), at) for answer, at in kept]


def _days(repayment: Repayment) -> Iterator[Step]:
    """The days that the payment itself tells."""
    initiated = repayment.initiation_date
    if isinstance(initiated, RemoteTime) and (moment := initiated.at):
        yield Step(timezone.localdate(moment), moment, "neutral", "send", "Initiated", initiated.text)
    elif initiated and (day := calendar_day(str(initiated))):
        yield Step(day, None, "neutral", "send", "Initiated", str(initiated))
    if repayment.effective_date:
        yield Step(repayment.effective_date, None, "neutral", "calendar-event", "Effective")
    if completed := calendar_day(repayment.completion_date):
        yield Step(completed, None, "neutral", "circle-check", "Completed")


def _messages(messages: Sequence[Telling]) -> Iterator[Step]:
    """What messages tell, each at its own time; before a return without a message of the success stands the gap."""
    seen: set[str] = set()
    for message in messages:
        status = (message.status or message.event.rpartition(".")[2]).upper()
        if status == "FAILED_AFTER_SUCCESS" and "SUCCEEDED" not in seen:
            yield _gap(message.at, "It had succeeded before; no message here tells when")
        seen.add(status)
        look = wording.status(status)
        undelivered = wording.status(message.delivery).state == "bad" if message.delivery else False
        parts = (message.reason, "The message itself was not delivered" if undelivered else "", message.sent)
        meta = ". ".join(filter(None, parts))
        day = timezone.localdate(message.at)
        yield Step(
            day, message.at, look.state, look.icon, f"Message: {look.word.lower()}", meta, url=message.url
        )


def _states(answers: Sequence[Told], messages: Sequence[Telling]) -> Iterator[Step]:
    """What lists told; when one state became the next is a gap, unless a message tells it."""
    if not answers:
        return
    told = {(message.status or "").upper() for message in messages}
    yield _seen(answers[0], "First told here as")
    if answers[0].status == "FAILED_AFTER_SUCCESS" and not told & {"SUCCEEDED", "FAILED_AFTER_SUCCESS"}:
        yield _gap(answers[0].at, "It had succeeded before; when it did was not told here")
    for before, after in pairwise(answers):
        if before.status != after.status:
            gap = f"It changed after {wording.clock(before.at)}; when exactly was not told"
            yield _seen(after, "Then told as", "" if after.status in told else gap)


def _gap(before: datetime, text: str) -> Step:
    at = before - timedelta(microseconds=1)
    return Step(timezone.localdate(before), at, "warn", "help-circle", text, is_dated=False)


def _seen(told: Told, words: str, gap: str = "") -> Step:
    look = wording.status(told.status or "unknown")
    meta = ". ".join(part for part in (told.repayment.error_description or "", gap) if part)
    day = timezone.localdate(told.at)
    return Step(day, told.at, look.state, look.icon, f"{words} {look.word.lower()}", meta)
