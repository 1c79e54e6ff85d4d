"""The form of every benchmark: one row for each figure, with the spread of its runs, and the table that rows make.

A figure is the median of several runs. Beside a reference it is a ratio, or how much ours is more, of each run and the
reference's run beside it.
"""

import gc
import math
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

Runs = float | Sequence[float]
"""What was measured: once, or in several runs."""
TIMES = "×"


class Row(NamedTuple):
    """One figure, what it may be, and what it was made of."""

    name: str
    figure: float
    least: float
    most: float
    """Half of the runs lie between these two."""
    unit: str
    limit: float | None
    """None where nothing is promised."""
    is_met: bool
    ours: str = ""
    reference: str = ""
    why: str = ""
    """The reason, where it is missed."""


def compared(
    name: str, ours: Runs, reference: Runs, limit: float | None, *, unit: str = "ms", why: str = ""
) -> Row:
    """A row that is met as long as ours is at most `limit` times the reference."""
    ratios = [one / other for one, other in zip(_runs(ours), _runs(reference), strict=True)]
    return _row(name, ratios, limit, TIMES, why)._replace(
        ours=_worded(_median(ours), unit), reference=_worded(_median(reference), unit)
    )


def bounded(name: str, ours: Runs, reference: Runs, limit: float, *, unit: str = "ms", why: str = "") -> Row:
    """A row that is met as long as ours is at most `limit` more than the reference."""
    extra = [one - other for one, other in zip(_runs(ours), _runs(reference), strict=True)]
    return _row(name, extra, limit, f"{unit} more", why)._replace(
        ours=_worded(_median(ours), unit), reference=_worded(_median(reference), unit)
    )


def at_most(name: str, ours: Runs, limit: float | None, *, unit: str = "ms", why: str = "") -> Row:
    """A row that is met as long as ours is at most `limit`; nothing is promised without one."""
    return _row(name, ours, limit, unit, why)


def at_least(name: str, ours: Runs, limit: float, *, unit: str, why: str = "") -> Row:
    """A row that is met as long as ours is `limit` or more."""
    row = _row(name, ours, limit, unit, why)
    return row._replace(is_met=row.figure >= limit)


def timed(
    *works: Callable[[], object], rounds: int = 15, clock: Callable[[], float] = time.perf_counter
) -> list[list[float]]:
    """Milliseconds of each run of several pieces of work, taken in turns so that all meet the same machine."""
    runs = [[_timed(work, clock) for work in works] for _ in range(rounds)]
    return [list(times) for times in zip(*runs, strict=True)]


def p95(took: Sequence[float]) -> float:
    """Of twenty requests the slowest but one."""
    return statistics.quantiles(took, n=20, method="inclusive")[-1]


def markdown(rows: Iterable[Row]) -> str:
    """The rows as a Markdown table, and under it the reason for each that is missed."""
    rows = list(rows)
    head = [
        "| what | ours | reference | figure | half of the runs | limit | met |",
        "|---|--:|--:|--:|--:|--:|---|",
    ]
    missed = [
        f"\n*Missed:* {row.name}: {row.why or 'the cause is not known.'}" for row in rows if not row.is_met
    ]
    return "\n".join([*head, *map(_line, rows), *missed])


def _line(row: Row) -> str:
    spread = "" if row.least == row.most else f"{_number(row.least)} to {_number(row.most)}"
    limit = "" if row.limit is None else _number(row.limit)
    met = "" if row.limit is None else "yes" if row.is_met else "**no**"
    figure = _worded(row.figure, row.unit)
    return f"| {row.name} | {row.ours} | {row.reference} | {figure} | {spread} | {limit} | {met} |"


def _row(name: str, figures: Runs, limit: float | None, unit: str, why: str) -> Row:
    runs = list(_runs(figures))
    least, figure, most = statistics.quantiles(runs * 2 if len(runs) == 1 else runs, n=4, method="inclusive")
    return Row(name, figure, least, most, unit, limit, limit is None or figure <= limit, why=why)


def _runs(figures: Runs) -> Sequence[float]:
    return figures if isinstance(figures, Sequence) else [figures]


def _median(figures: Runs) -> float:
    return statistics.median(_runs(figures))


def _worded(figure: float, unit: str) -> str:
    return f"{_number(figure)} {unit}"


def _number(figure: float) -> str:
    """Three digits, and every one before the point."""
    digits = 2 - math.floor(math.log10(abs(figure))) if figure else 0
    return f"{figure:,.{max(0, min(digits, 2))}f}"


def _timed(work: Callable[[], object], clock: Callable[[], float]) -> float:
    gc.collect()
    started = clock()
    work()
    return (clock() - started) * 1000
