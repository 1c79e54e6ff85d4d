"""The chart of 90 days: the principal of past due accounts by aging, a bar for each day.

The oldest debt is at the bottom, because its trend matters most. Each bar is a link to its day, and its values show
while it has the pointer or the focus. The table behind it has the same figures.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import ROUND_CEILING, Decimal
from itertools import groupby
from typing import Final, NamedTuple

from django.utils.html import escape
from django.utils.safestring import SafeString

from portal.portfolio.models import LATE, BookDay, BucketSum
from portal.ui import wording
from portal.ui.charts import round_position, x_position, y_position
from servicing.figures import NOTHING

DAYS: Final = 90
TOP, HEIGHT = 30, 150
BOTTOM: Final = Decimal(TOP + HEIGHT)
GAP_PIXELS: Final = 2
CURRENT: Final = ' aria-current="date"'
BAR_SHARE: Final = Decimal("0.86")
LABEL_EVERY: Final = 15
UNITS: Final = {10**9: "B", 10**6: "M", 10**3: "K"}
SHORT: Final = {one: str(one.label).removesuffix(" days") for one in LATE}
LOOKS: Final = dict(zip(LATE, ("1", "30", "60", "90"), strict=True))
"""The end of the class of each bucket's parts."""


class Tick(NamedTuple):
    at: Decimal
    words: str
    is_minor: bool = False


class Part(NamedTuple):
    """The part of a bar that stands for a bucket."""

    look: str
    y: Decimal
    height: Decimal


class Bar(NamedTuple):
    """A day that can be told."""

    day: date
    x: Decimal
    width: Decimal
    parts: Sequence[Part]
    words: str
    is_chosen: bool

    @property
    def svg(self) -> str:
        """The bar on screen. Ninety are joined faster than a template renders them; only words need escaping."""
        rects = "".join(
            [f'<rect class="sd-aged-{look}" y="{y}" height="{height}"/>' for look, y, height in self.parts]
        )
        return (
            f'<a href="?day={self.day}"{CURRENT if self.is_chosen else ""}>'
            f'<svg x="{self.x}%" width="{self.width}%">'
            f'<rect class="sd-hit" y="{TOP}" height="{HEIGHT}"/>{rects}</svg>'
            f'<text y="14">{escape(self.words)}</text></a>'
        )


class Gap(NamedTuple):
    """Days that can't be told, or that aren't written."""

    first: date
    last: date
    x: Decimal
    width: Decimal
    words: str

    @property
    def middle(self) -> Decimal:
        return round_position(self.x + self.width / 2)


@dataclass(frozen=True)
class Day:
    """The past due principal of a day by bucket; None if the day can't be told."""

    day: date
    amounts: Mapping[str, Decimal] | None

    @property
    def total(self) -> Decimal | None:
        return None if self.amounts is None else sum(self.amounts.values(), NOTHING)

    @property
    def parts(self) -> list[Decimal | None]:
        return [self.amounts[one] if self.amounts is not None else None for one in LATE]


@dataclass(frozen=True)
class Chart:
    days: Sequence[Day]
    bars: Sequence[Bar]
    grid: Sequence[Tick]
    labels: Sequence[Tick]
    gaps: Sequence[Gap]
    legend: Sequence[tuple[str, str, Decimal]]
    """The end of its class, words and amount of the chosen day for each bucket, the newest debt first."""
    chosen: Day
    description: str
    top: int = TOP
    height: int = HEIGHT
    bottom: Decimal = BOTTOM

    @property
    def svg(self) -> SafeString:
        """All bars on screen."""
        return SafeString("".join([one.svg for one in self.bars]))


def read(day: date, written: Mapping[date, BookDay], sums: Iterable[BucketSum]) -> Chart | None:
    """The chart of the days up to this one, from those on file; None before there are two of them."""
    amounts: dict[date, dict[str, Decimal]] = defaultdict(lambda: dict.fromkeys(LATE, NOTHING))
    for one in sums:
        if one.bucket in LATE:
            amounts[one.day][one.bucket] += one.principal
    all_days = [day - timedelta(days=number) for number in reversed(range(DAYS))]
    first = min((one for one in all_days if one in written), default=day)
    days = [
        Day(one, amounts[one] if one in written and not written[one].not_certain else None)
        for one in all_days
        if one >= first
    ]
    highest = max((one.total or NOTHING for one in days), default=NOTHING)
    if len(days) < 2 or not highest:
        return None
    scale, grid = _grid(highest)
    gaps = _gaps(days)
    return Chart(
        days=days,
        bars=_bars(days, scale, day),
        grid=grid,
        labels=_labels(days),
        gaps=gaps,
        legend=[(LOOKS[one], str(one.label), amounts[day][one]) for one in LATE],
        chosen=days[-1],
        description=_description(days, gaps),
    )


def _grid(highest: Decimal) -> tuple[Decimal, list[Tick]]:
    """The amount at the top, and two to four lines at round amounts."""
    unit = Decimal(1).scaleb((highest / 4).adjusted())
    step = next(unit * factor for factor in (1, 2, Decimal("2.5"), 5, 10) if unit * factor * 4 >= highest)
    scale = step * (highest / step).to_integral_value(ROUND_CEILING)
    count = int(scale / step)
    return scale, [Tick(_up(step * number, scale), _short(step * number)) for number in range(count + 1)]


def _short(amount: Decimal) -> str:
    for unit, name in UNITS.items():
        if amount >= unit:
            return f"${(amount / unit).normalize():f} {name}"
    return f"${amount.normalize():,f}"


def _up(amount: Decimal, scale: Decimal) -> Decimal:
    return TOP + y_position(amount, scale, HEIGHT).to_integral_value()


def _bars(days: Sequence[Day], scale: Decimal, chosen: date) -> list[Bar]:
    width = round_position(Decimal(100) / len(days) * BAR_SHARE)
    bars = []
    for number, one in enumerate(days):
        if one.amounts is None:
            continue
        ground, below, parts = BOTTOM, NOTHING, []
        for bucket in reversed(LATE):
            below += one.amounts[bucket]
            top = _up(below, scale)
            if (height := ground - top) > 0:
                gap = GAP_PIXELS if ground < BOTTOM and height > GAP_PIXELS else 0
                parts.append(Part(LOOKS[bucket], top, height - gap))
            ground = top
        x = x_position(number, len(days))
        bars.append(Bar(one.day, x, width, parts, _words(one), one.day == chosen))
    return bars


def _words(one: Day) -> str:
    amounts = one.amounts or {}
    values = " · ".join(f"{SHORT[bucket]} {wording.money(amounts[bucket])}" for bucket in LATE)
    return f"{one.day:%a}, {wording.short_day(one.day)}: {values} · Together {wording.money(one.total)}"


def _labels(days: Sequence[Day]) -> list[Tick]:
    found = range(len(days) - 1, -1, -LABEL_EVERY)
    return [
        Tick(x_position(2 * number + 1, 2 * len(days)), wording.short_day(days[number].day), place % 2 == 1)
        for place, number in enumerate(found)
    ]


def _gaps(days: Sequence[Day]) -> list[Gap]:
    found, start = [], 0
    for is_gap, run in groupby(days, lambda one: one.amounts is None):
        run_days = list(run)
        if is_gap:
            first, last = run_days[0].day, run_days[-1].day
            words = f"{wording.days(first, last)} not certain"
            x, width = x_position(start, len(days)), x_position(len(run_days), len(days))
            found.append(Gap(first, last, x, width, words))
        start += len(run_days)
    return found


def _description(days: Sequence[Day], gaps: Sequence[Gap]) -> str:
    known = [one for one in days if one.total is not None]
    largest = max(known, key=lambda one: one.total or NOTHING)
    words = (
        f"{len(known)} days to {wording.day(days[-1].day)}; the most was {wording.money(largest.total)} on "
        f"{wording.short_day(largest.day)}. "
    )
    return words + "".join(f"{one.words}. " for one in gaps) + "The table below has every figure."
