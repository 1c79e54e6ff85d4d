"""Balances over time as small line charts, from saved copies: the service only reports the current ones.

Each chart begins at zero dollars, so that its slope is not exaggerated.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final, NamedTuple

from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from portal.core.business_date import business_date_at
from portal.records.models import Account, Snapshot
from portal.ui.charts import polyline, x_position
from portal.ui.templatetags.ui import moment, money
from servicing import Statement, codec

MAX_COPIES: Final = 200
MAX_ROWS: Final = 60
HEIGHT: Final = 40
HEADROOM: Final = Decimal(2)
MICROSECOND: Final = timedelta(microseconds=1)
SERIES: Final = (
    ("Payoff balance", "payoff_balance", "accent"),
    ("Available credit", "available_credit", "neutral"),
    ("Past due balance", "past_due_balance", "bad"),
)


class Sample(NamedTuple):
    """The statement as of a time."""

    at: datetime
    statement: Statement


@dataclass(frozen=True)
class Trend:
    """One balance over time."""

    label: str
    look: str
    points: str
    """The line's points in a box 100 wide and :data:`HEIGHT` high; empty with fewer than two values."""
    first: datetime
    last: datetime
    has_changed: bool = False

    @property
    def area(self) -> str:
        """The points of the filled area below the line."""
        return f"{self.points} 100,{HEIGHT} 0,{HEIGHT}"


def samples(record: Account) -> list[Sample]:
    """The saved copies, oldest first; the current one is last."""
    earlier = Snapshot.objects.filter(answer=record.answer)[:MAX_COPIES]
    copies = [(one.last_at, one.body) for one in earlier][::-1]
    if record.answer and record.answer_at:
        copies.append((record.answer_at, record.answer.body))
    return [Sample(at, codec.decode(Statement, text)) for at, text in copies]


def trends(history: Sequence[Sample]) -> list[Trend]:
    """Build the three charts; none until a balance has changed and the copies are of more than one day."""
    balances = {tuple(getattr(one.statement, field) for _, field, _ in SERIES) for one in history}
    if len(balances) < 2 or business_date_at(history[0].at) == business_date_at(history[-1].at):
        return []
    return [_trend(*series, history) for series in SERIES]


def trend_rows(history: Sequence[Sample]) -> SafeString:
    """The same figures as table rows, newest first."""
    cells = '<td class="sd-num">{}</td>' * len(SERIES)
    rows = (
        (moment(one.at), *(money(getattr(one.statement, field)) for _, field, _ in SERIES))
        for one in reversed(history[-MAX_ROWS:])
    )
    return format_html_join("", f'<tr><th scope="row">{{}}</th>{cells}</tr>', rows)


def _trend(label: str, field: str, look: str, history: Sequence[Sample]) -> Trend:
    first, last = history[0].at, history[-1].at
    values = [(one.at, getattr(one.statement, field)) for one in history]
    points = [
        (x_position((at - first) // MICROSECOND, (last - first) // MICROSECOND), value)
        for at, value in values
        if value is not None
    ]
    line = polyline(points, HEIGHT, HEADROOM) if len(points) > 1 else ""
    return Trend(label, look, line, first, last, len({value for _, value in values}) > 1)
