"""The chart of a schedule: bars of principal and interest, the balance as a line, and today.

In a long schedule, a bar stands for a year's installments in the same state. It is as wide as their number and as high
as their average, so its area is their sum. There is no chart if a date or an amount is missing. The table on the same
page has all figures.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_CEILING, Decimal
from html import escape
from itertools import accumulate, groupby
from operator import attrgetter
from typing import NamedTuple

from django.utils.safestring import SafeString

from portal.ui import wording
from portal.ui.charts import polyline, round_position, x_position, y_position
from servicing.schedules import Installment, Schedule, State

TOP, HEIGHT = 22, 132
"""Pixels above the plot, for today's label, and of the plot itself."""
BOTTOM = Decimal(TOP + HEIGHT)
MAX_MONTH_LABELS = 9
MAX_BAR_PERCENT = Decimal(6)
MANY_BARS = 60
NARROW_BAR, WIDE_BAR = Decimal("0.8"), Decimal("0.95")
"""The share of its slot that the bar of one installment fills, and of several."""
GAP_PIXELS = 2
STEPS = (1, 2, Decimal("2.5"), 5, 10)
BALANCE_STEPS = (1, Decimal("1.2"), Decimal("1.5"), 2, Decimal("2.5"), 3, 4, 5, 6, 8, 10)
UNITS = {10**12: "T", 10**9: "B", 10**6: "M"}


class Block(NamedTuple):
    """One segment of a bar."""

    kind: str
    y: Decimal
    height: Decimal


class Bar(NamedTuple):
    """One installment, or the installments of a year that are in the same state."""

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
        before, after = ('fill="url(#hatch-', ')"') if self.is_paid else ('class="sd-bar-', '"')
        blocks = [(f"{before}{kind}{after}", y, height) for kind, y, height in self.blocks]
        if self.is_overdue:
            blocks.append(('class="sd-bar-overdue"', self.y, self.height))
        rects = "".join(
            [f'<rect {look} width="100%" y="{y}" height="{height}"/>' for look, y, height in blocks]
        )
        # Nothing here needs escaping. A schedule has hundreds of bars, so plain joining saves time.
        return SafeString(
            f'<svg x="{self.x}%" width="{self.width}%"><title>{escape(self.words)}</title>{rects}</svg>'
        )


class Tick(NamedTuple):
    """A grid line with its amount, or a month below the bars."""

    at: Decimal
    words: str
    is_minor: bool = False


@dataclass(frozen=True)
class Chart:
    """Everything that the page and the printed schedule draw."""

    bars: Sequence[Bar]
    grid: Sequence[Tick]
    months: Sequence[Tick]
    kinds: Sequence[str]
    """Principal and interest, or only the total."""
    balance: str
    """The points of the balance line, on its own scale; empty if a balance is missing."""
    balance_grid: Sequence[Tick]
    """Zero, half and all of that scale."""
    today: Decimal
    today_words: str
    description: str
    has_paid: bool
    has_overdue: bool
    is_yearly: bool
    top: int = TOP
    height: int = HEIGHT
    bottom: Decimal = BOTTOM

    @property
    def today_is_late(self) -> bool:
        """Whether today's label belongs to the left of its line."""
        return self.today > 80


def chart(schedule: Schedule, today: date, copied_on: date | None) -> Chart | None:
    """Build the chart of a schedule by due date; None if it would be incomplete."""
    states = dict(zip(map(id, schedule.rows), schedule.states(today, copied_on), strict=True))
    rows = sorted((row for row in schedule.rows if row.due_date), key=lambda row: row.due_date or today)
    kinds = _kinds(rows)
    highest = max((_amount(row, kinds) for row in rows), default=Decimal(0))
    if not kinds or len(rows) != len(schedule.rows) or highest <= 0:
        return None
    scale, grid = _grid(highest)
    is_yearly = len(rows) > MANY_BARS
    runs = _runs(rows, states) if is_yearly else [[row] for row in rows]
    bars = _bars(runs, states, kinds, scale)
    balance, balance_grid = _balance(rows, runs)
    return Chart(
        bars=bars,
        grid=grid,
        months=_years(rows) if is_yearly else _months(rows),
        kinds=kinds,
        balance=balance,
        balance_grid=balance_grid,
        today=x_position(sum(row.due_date < today for row in rows if row.due_date), len(rows)),
        today_words=f"Today, {today:%b} {today.day}",
        description=_description(rows, list(states.values()), kinds),
        has_paid=any(bar.is_paid for bar in bars),
        has_overdue=any(bar.is_overdue for bar in bars),
        is_yearly=is_yearly,
    )


def _kinds(rows: Sequence[Installment]) -> tuple[str, ...]:
    """The amounts that every row has: both parts, only the total, or none."""
    for kinds in (("principal", "interest"), ("total",)):
        amounts = [getattr(row, kind) for row in rows for kind in kinds]
        if amounts and all(amount is not None and amount >= 0 for amount in amounts):
            return kinds
    return ()


def _amount(row: Installment, kinds: Sequence[str]) -> Decimal:
    return sum((getattr(row, kind) for kind in kinds), Decimal(0))


def _grid(highest: Decimal) -> tuple[Decimal, list[Tick]]:
    """The amount at the top of the chart, and two to four grid lines at round amounts."""
    step = _step(highest, 4, STEPS)
    count = int((highest / step).to_integral_value(ROUND_CEILING))
    scale = step * count
    return scale, [Tick(_up(step * n, scale), _short(step * n, step)) for n in range(count + 1)]


def _step(highest: Decimal, number: int, factors: Sequence[Decimal | int]) -> Decimal:
    """The smallest round amount that reaches the highest in so many steps."""
    unit = Decimal(1).scaleb((highest / number).adjusted())
    return next(unit * factor for factor in factors if unit * factor * number >= highest)


def _short(amount: Decimal, step: Decimal) -> str:
    """An amount short enough for the axis. Steps are round, so no digit is lost."""
    for unit, name in UNITS.items():
        if amount >= unit:
            return f"${(amount / unit).normalize():f}{name}"
    return f"${amount:,.{0 if step == step.to_integral_value() else 2}f}"


def _runs(rows: Sequence[Installment], states: Mapping[int, State]) -> list[list[Installment]]:
    def year_and_state(row: Installment) -> tuple[int, bool, bool]:
        state = states[id(row)]
        return row.due_date.year if row.due_date else 0, state is State.PAID, state is State.OVERDUE

    return [list(run) for _, run in groupby(rows, year_and_state)]


def _bars(
    runs: Sequence[Sequence[Installment]], states: Mapping[int, State], kinds: Sequence[str], scale: Decimal
) -> list[Bar]:
    slot = Decimal(100) / sum(map(len, runs))
    bars, start = [], Decimal(0)
    for run in runs:
        room = slot * len(run)
        width = room * WIDE_BAR if len(run) > 1 else min(room * NARROW_BAR, MAX_BAR_PERCENT)
        blocks, below, ground = [], Decimal(0), BOTTOM
        for kind in kinds:
            above = below + sum(map(attrgetter(kind), run), Decimal(0)) / len(run)
            y = _up(above, scale)
            height = ground - y
            gap = GAP_PIXELS if below and height > GAP_PIXELS else 0
            if height:
                blocks.append(Block(kind, y, height - gap))
            below, ground = above, y
        state, x = states[id(run[0])], round_position(start + (room - width) / 2)
        is_paid, is_overdue = state is State.PAID, state is State.OVERDUE
        height = BOTTOM - ground
        bars.append(
            Bar(x, round_position(width), blocks, is_paid, is_overdue, ground, height, _words(run, kinds))
        )
        start += room
    return bars


def _words(run: Sequence[Installment], kinds: Sequence[str]) -> str:
    due, amount = run[0].due_date, wording.money(sum((_amount(row, kinds) for row in run), Decimal(0)))
    if len(run) == 1 or due is None:
        return f"{wording.day(due)}: {amount}"
    return f"{due.year}: {amount} in {len(run)} installments"


def _years(rows: Sequence[Installment]) -> list[Tick]:
    """A label for each year below the middle of its installments."""
    years = [row.due_date.year for row in rows if row.due_date]
    every = -(-len(set(years)) // MAX_MONTH_LABELS)
    return [
        Tick(
            x_position(2 * years.index(year) + years.count(year), 2 * len(years)),
            str(year),
            n // every % 2 == 1,
        )
        for n, year in enumerate(sorted(set(years)))
        if n % every == 0
    ]


def _months(rows: Sequence[Installment]) -> list[Tick]:
    every = -(-len(rows) // MAX_MONTH_LABELS)
    return [
        Tick(x_position(2 * index + 1, 2 * len(rows)), f"{row.due_date:%b %Y}", index // every % 2 == 1)
        for index, row in enumerate(rows)
        if index % every == 0 and row.due_date
    ]


def _balance(
    rows: Sequence[Installment], runs: Sequence[Sequence[Installment]]
) -> tuple[str, Sequence[Tick]]:
    """A point at the first installment and at the last of each bar, and the axis. Every row must have a balance."""
    balances = [row.balance for row in rows if row.balance is not None]
    if len(balances) != len(rows) or len(rows) < 2 or max(balances) <= 0 or min(balances) < 0:
        return "", ()
    places = sorted({0, *(end - 1 for end in accumulate(map(len, runs)))})
    step = _step(max(balances), 2, BALANCE_STEPS)
    points = [(x_position(2 * place + 1, 2 * len(rows)), balances[place]) for place in places]
    ticks = [Tick(_up(step * n, step * 2), _short(step * n, step)) for n in range(3)]
    return polyline(points, HEIGHT, largest=step * 2), ticks


def _description(rows: Sequence[Installment], states: Sequence[State], kinds: Sequence[str]) -> str:
    largest = max(_amount(row, kinds) for row in rows)
    paid, overdue = states.count(State.PAID), states.count(State.OVERDUE)
    return (
        f"{len(rows)} installments from {wording.day(rows[0].due_date)} to {wording.day(rows[-1].due_date)}, "
        f"the largest {wording.money(largest)}; {paid} paid, {overdue} past due. The table below has every figure."
    )


def _up(amount: Decimal, scale: Decimal) -> Decimal:
    """The height of an amount, in whole pixels: half the digits of a long chart."""
    return TOP + y_position(amount, scale, HEIGHT).to_integral_value()
