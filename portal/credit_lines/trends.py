"""How balances moved: small lines over the answers that are kept, for a service that only knows today. Hides geometry.

A line begins at zero dollars, so that its slope is never flattered.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

from portal.registry.models import Record
from servicing import Statement, codec

KEPT = 200
"""So many earlier answers are drawn."""
HEIGHT = 40
MICRO = timedelta(microseconds=1)
SERIES = (
    ("Payoff balance", "payoff_balance", "accent"),
    ("Available credit", "available_credit", "neutral"),
    ("Past due balance", "past_due_balance", "bad"),
)


class Sample(NamedTuple):
    """What the service said at a time."""

    at: datetime
    statement: Statement


@dataclass(frozen=True)
class Trend:
    """One balance over time."""

    label: str
    look: str
    now: Decimal | None
    points: str
    """Of the line, in a box 100 wide and :data:`HEIGHT` high; empty where fewer than two samples tell it."""
    first: datetime
    last: datetime

    @property
    def area(self) -> str:
        """The points of what lies below the line."""
        return f"{self.points} 100,{HEIGHT} 0,{HEIGHT}"


def samples(record: Record) -> list[Sample]:
    """The answers that are kept, the oldest first, the present one last."""
    kept = [(one.at, one.answer) for one in record.snapshots.all()[:KEPT]][::-1]
    if record.answer and record.answer_at:
        kept.append((record.answer_at, record.answer))
    return [Sample(at, codec.decode(Statement, answer)) for at, answer in kept]


def trends(told: Sequence[Sample]) -> list[Trend]:
    """The three lines; none before there are two samples."""
    if len(told) < 2:
        return []
    return [_trend(label, field, look, told) for label, field, look in SERIES]


def _trend(label: str, field: str, look: str, told: Sequence[Sample]) -> Trend:
    values = [
        (sample.at, value) for sample in told if (value := getattr(sample.statement, field)) is not None
    ]
    first, last = told[0].at, told[-1].at
    span = last - first
    highest = max((value for _, value in values), default=Decimal(0))
    points = [
        f"{_cut(Decimal((at - first) // MICRO) * 100 / max(span // MICRO, 1))},{_height(value, highest)}"
        for at, value in values
    ]
    now = getattr(told[-1].statement, field)
    return Trend(label, look, now, " ".join(points) if len(points) > 1 else "", first, last)


def _height(value: Decimal, highest: Decimal) -> Decimal:
    return (
        _cut(HEIGHT - max(value, Decimal(0)) * (HEIGHT - 2) / highest)
        if highest > 0
        else _cut(Decimal(HEIGHT - 1))
    )


def _cut(value: Decimal) -> Decimal:
    return value.quantize(Decimal("0.01"))
