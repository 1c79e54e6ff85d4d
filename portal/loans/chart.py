"""The chart of a schedule: bars of principal and interest, the balance as a line, and today.

There is no chart if a date or an amount is missing. The table on the same page has all figures.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_CEILING, Decimal
from html import escape
from operator import attrgetter
from typing import NamedTuple

from django.utils.safestring import SafeString

from portal.ui import wording
from portal.ui.charts import across, down, polyline, rounded
from servicing.schedules import Installment, Schedule, State

TOP, HEIGHT = 22, 132
"""Pixels above the plot, where the label of today is, and of the plot."""
BOTTOM = TOP + HEIGHT
BOTTOM_LINE = Decimal(BOTTOM)
MAX_MONTH_LABELS = 9
MAX_BAR_PERCENT = Decimal(6)
MANY_BARS = 60
GAP_PIXELS = 2
BALANCE_HEADROOM = HEIGHT * Decimal("0.06")
UNITS = {10**12: "T", 10**9: "B", 10**6: "M"}


class Block(NamedTuple):
    """One part of a bar."""

    kind: str
    y: Decimal
    height: Decimal


class Bar(NamedTuple):
    """One installment."""

    x: Decimal
    width: Decimal
    blocks: Sequence[Block]
    is_paid: bool
    is_overdue: bool
    y: Decimal
    height: Decimal
    words: str

    @property
    def svg(self) -> SafeString:
        """The bar as SVG for the page."""
        before, after = ('fill="url(#hatch-', ')"') if self.is_paid else ('class="sd-bar-', '"')
        blocks = [(f"{before}{kind}{after}", y, height) for kind, y, height in self.blocks]
        if self.is_overdue:
            blocks.append(('class="sd-bar-overdue"', self.y, self.height))
        position = f'x="{self.x}%" width="{self.width}%"'
        rects = "".join(
            [f'<rect {look} {position} y="{y}" height="{height}"/>' for look, y, height in blocks]
        )
        # Numbers, words of ours, and a day with an amount: a schedule has hundreds of bars, so each is only joined.
        return SafeString(f"<g><title>{escape(self.words)}</title>{rects}</g>")


class Tick(NamedTuple):
    """A grid line with its amount, or a month below the bars."""

    at: Decimal
    words: str
    is_minor: bool = False


@dataclass(frozen=True)
class Chart:
    """What the page and the printed schedule draw."""

    bars: Sequence[Bar]
    grid: Sequence[Tick]
    months: Sequence[Tick]
    kinds: Sequence[str]
    """Principal and interest, or only the total."""
    balance: str
    """The points of the balance line, on its own scale; empty if a balance is missing."""
    today: Decimal
    today_words: str
    description: str
    has_paid: bool
    has_overdue: bool
    top: int = TOP
    height: int = HEIGHT
    bottom: int = BOTTOM

    @property
    def today_is_late(self) -> bool:
        """Whether the label of today goes to the left of its line."""
        return self.today > 80


def chart(schedule: Schedule, today: date) -> Chart | None:
    """The chart of a schedule in order of due dates; None if it would be incomplete."""
    states = dict(zip(map(id, schedule.rows), schedule.states(today), strict=True))
    rows = sorted((row for row in schedule.rows if row.due_date), key=lambda row: row.due_date or today)
    kinds = _kinds(rows)
    highest = max((_amount(row, kinds) for row in rows), default=Decimal(0))
    if not kinds or len(rows) != len(schedule.rows) or highest <= 0:
        return None
    scale, grid = _grid(highest)
    bars = _bars(rows, states, kinds, scale)
    return Chart(
        bars=bars,
        grid=grid,
        months=_months(rows),
        kinds=kinds,
        balance=_balance(rows),
        today=across(sum(row.due_date < today for row in rows if row.due_date), len(rows)),
        today_words=f"Today, {today:%b} {today.day}",
        description=_description(rows, list(states.values()), kinds),
        has_paid=any(bar.is_paid for bar in bars),
        has_overdue=any(bar.is_overdue for bar in bars),
    )


def _kinds(rows: Sequence[Installment]) -> tuple[str, ...]:
    """The amounts that every row has: both parts, or only the total, or none."""
    for kinds in (("principal", "interest"), ("total",)):
        amounts = [getattr(row, kind) for row in rows for kind in kinds]
        if amounts and all(amount is not None and amount >= 0 for amount in amounts):
            return kinds
    return ()


def _amount(row: Installment, kinds: Sequence[str]) -> Decimal:
    return sum((getattr(row, kind) for kind in kinds), Decimal(0))


def _grid(highest: Decimal) -> tuple[Decimal, list[Tick]]:
    """The amount at the top, and two to four grid lines at round amounts."""
    unit = Decimal(1).scaleb((highest / 4).adjusted())
    step = next(unit * factor for factor in (1, 2, Decimal("2.5"), 5, 10) if unit * factor * 4 >= highest)
    count = int((highest / step).to_integral_value(ROUND_CEILING))
    scale = step * count
    return scale, [Tick(_up(step * n, scale), _short(step * n, step)) for n in range(count + 1)]


def _short(amount: Decimal, step: Decimal) -> str:
    """An amount short enough for the axis; steps are round, so nothing is lost."""
    for unit, name in UNITS.items():
        if amount >= unit:
            return f"${(amount / unit).normalize():f}{name}"
    return f"${amount:,.{0 if step == step.to_integral_value() else 2}f}"


def _bars(
    rows: Sequence[Installment], states: Mapping[int, State], kinds: Sequence[str], scale: Decimal
) -> list[Bar]:
    slot = Decimal(100) / len(rows)
    width = min(slot * (Decimal("0.8") if len(rows) <= MANY_BARS else Decimal("0.72")), MAX_BAR_PERCENT)
    margin, shown_width = (slot - width) / 2, rounded(width)
    amounts_of = [attrgetter(kind) for kind in kinds]
    bars = []
    for index, row in enumerate(rows):
        blocks, below, ground = [], Decimal(0), BOTTOM_LINE
        for kind, amount in zip(kinds, amounts_of, strict=True):
            above = below + amount(row)
            y = _up(above, scale)
            height = ground - y
            gap = GAP_PIXELS if below and height > GAP_PIXELS else 0
            if height:
                blocks.append(Block(kind, y, height - gap))
            below, ground = above, y
        words = f"{wording.day(row.due_date)}: {wording.money(below)}"
        state, x = states[id(row)], rounded(slot * index + margin)
        is_paid, is_overdue = state is State.PAID, state is State.OVERDUE
        bars.append(Bar(x, shown_width, blocks, is_paid, is_overdue, ground, BOTTOM_LINE - ground, words))
    return bars


def _months(rows: Sequence[Installment]) -> list[Tick]:
    every = -(-len(rows) // MAX_MONTH_LABELS)
    return [
        Tick(across(2 * index + 1, 2 * len(rows)), f"{row.due_date:%b %Y}", index // every % 2 == 1)
        for index, row in enumerate(rows)
        if index % every == 0 and row.due_date
    ]


def _balance(rows: Sequence[Installment]) -> str:
    balances = [row.balance for row in rows if row.balance is not None]
    if len(balances) != len(rows) or len(rows) < 2 or max(balances) <= 0 or min(balances) < 0:
        return ""
    points = ((across(2 * index + 1, 2 * len(rows)), balance) for index, balance in enumerate(balances))
    return polyline(points, HEIGHT, BALANCE_HEADROOM)


def _description(rows: Sequence[Installment], states: Sequence[State], kinds: Sequence[str]) -> str:
    largest = max(_amount(row, kinds) for row in rows)
    paid, overdue = states.count(State.PAID), states.count(State.OVERDUE)
    return (
        f"{len(rows)} installments from {wording.day(rows[0].due_date)} to {wording.day(rows[-1].due_date)}, "
        f"the largest {wording.money(largest)}; {paid} paid, {overdue} overdue. The table below has every figure."
    )


def _up(amount: Decimal, scale: Decimal) -> Decimal:
    return TOP + down(amount, scale, HEIGHT)
