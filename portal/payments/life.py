"""The life of one payment from what was told of it: its days, every state in which it was seen, and what nobody saw.

The service only knows how a payment stands now. What this desk was told earlier is kept, so the states can be put in
order; when exactly one became the next was not told, and that is said.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import pairwise

from django.utils import timezone

from portal.registry.models import Record
from portal.ui import wording
from servicing import RemoteTime, Repayment, codec
from servicing.values import calendar_day

STATES = 50
"""So many earlier answers are looked at."""


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


def life(record: Record) -> list[Step]:
    """What is known of a payment, the oldest first."""
    answers = answers_of(record)
    if not answers:
        return []
    steps = [*_days(answers[-1].repayment), *_states(answers)]
    return sorted(steps, key=lambda step: step.order)


def answers_of(record: Record) -> list[Told]:
    """Every answer that is kept, the oldest first; the last is how the payment stands."""
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


def _states(answers: Sequence[Told]) -> Iterator[Step]:
    first = answers[0]
    yield _seen(first, "First told here as")
    if first.status == "FAILED_AFTER_SUCCESS":
        text = "It had succeeded before; when it did was not told here"
        yield Step(timezone.localdate(first.at), None, "warn", "help-circle", text, is_dated=False)
    for before, after in pairwise(answers):
        if before.status != after.status:
            gap = f"It changed after {wording.clock(before.at)}; when exactly was not told"
            yield _seen(after, "Then told as", gap)


def _seen(told: Told, words: str, gap: str = "") -> Step:
    look = wording.status(told.status or "unknown")
    reason = told.repayment.error_description or ""
    meta = ". ".join(part for part in (reason, gap) if part)
    return Step(
        timezone.localdate(told.at), told.at, look.state, look.icon, f"{words} {look.word.lower()}", meta
    )
