"""Rows of figures, and the Markdown table with them.

A figure is the median of several runs. With a reference, each run is compared with the reference's run next to it: as a
ratio, or as a difference.
"""

import gc
import math
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

Runs = float | Sequence[float]
"""One measurement, or one for each run."""
TIMES = "×"


class Row(NamedTuple):
    """One figure with its limit, and the two figures that it compares."""

    name: str
    figure: float
    least: float
    most: float
    """Half of the runs are between these two."""
    unit: str
    limit: float | None
    """None if the row has no limit."""
    is_met: bool
    ours: str = ""
    reference: str = ""
    why: str = ""
    """The reason if the limit is missed."""


def compared(
    name: str, ours: Runs, reference: Runs, limit: float | None, *, unit: str = "ms", why: str = ""
) -> Row:
    """Return a row whose limit is met if ours is at most `limit` times the reference."""
    ratios = [one / other for one, other in zip(_runs(ours), _runs(reference), strict=True)]
    return _row(name, ratios, limit, TIMES, why)._replace(
        ours=_with_unit(_median(ours), unit), reference=_with_unit(_median(reference), unit)
    )


def bounded(name: str, ours: Runs, reference: Runs, limit: float, *, unit: str = "ms", why: str = "") -> Row:
    """Return a row whose limit is met if ours is at most `limit` more than the reference."""
    extra = [one - other for one, other in zip(_runs(ours), _runs(reference), strict=True)]
    return _row(name, extra, limit, f"{unit} more", why)._replace(
        ours=_with_unit(_median(ours), unit), reference=_with_unit(_median(reference), unit)
    )


def at_most(name: str, ours: Runs, limit: float | None, *, unit: str = "ms", why: str = "") -> Row:
    """Return a row whose limit, if any, is met if ours is at most `limit`."""
    return _row(name, ours, limit, unit, why)


def at_least(name: str, ours: Runs, limit: float, *, unit: str, why: str = "") -> Row:
    """Return a row whose limit is met if ours is at least `limit`."""
    row = _row(name, ours, limit, unit, why)
    return row._replace(is_met=row.figure >= limit)


def timed(
    *works: Callable[[], object],
    rounds: int = 15,
    clock: Callable[[], float] = time.perf_counter,
    before: Callable[[], object] = lambda: None,
) -> list[list[float]]:
    """Return the milliseconds of each run. The works run in turns, so that other load affects all of them alike.

    ``before`` runs before each round and is not timed.
    """
    runs = []
    for _ in range(rounds):
        before()
        runs.append([_timed(work, clock) for work in works])
    return [list(times) for times in zip(*runs, strict=True)]


def p95(took: Sequence[float]) -> float:
    """Return the 95th percentile."""
    return statistics.quantiles(took, n=20, method="inclusive")[-1]


def markdown(rows: Iterable[Row]) -> str:
    """Return the rows as a Markdown table, followed by the reasons for missed limits."""
    rows = list(rows)
    head = [
        "| what | ours | reference | figure | half of the runs | limit | met |",
        "|---|--:|--:|--:|--:|--:|---|",
    ]
    missed: dict[str, list[str]] = {}
    for row in rows:
        if not row.is_met:
            missed.setdefault(row.why or "the reason is not known.", []).append(row.name)
    reasons = [f"\n*Missed:* {'; '.join(names)}. *Why:* {why}" for why, names in missed.items()]
    return "\n".join([*head, *map(_line, rows), *reasons])


def _line(row: Row) -> str:
    spread = "" if row.least == row.most else f"{_number(row.least)} to {_number(row.most)}"
    limit = "" if row.limit is None else _number(row.limit)
    met = "" if row.limit is None else "yes" if row.is_met else "**no**"
    figure = _with_unit(row.figure, row.unit)
    return f"| {row.name} | {row.ours} | {row.reference} | {figure} | {spread} | {limit} | {met} |"


def _row(name: str, figures: Runs, limit: float | None, unit: str, why: str) -> Row:
    runs = list(_runs(figures))
    least, figure, most = statistics.quantiles(runs * 2 if len(runs) == 1 else runs, n=4, method="inclusive")
    return Row(name, figure, least, most, unit, limit, limit is None or figure <= limit, why=why)


def _runs(figures: Runs) -> Sequence[float]:
    return figures if isinstance(figures, Sequence) else [figures]


def _median(figures: Runs) -> float:
    return statistics.median(_runs(figures))


def _with_unit(figure: float, unit: str) -> str:
    return f"{_number(figure)} {unit}"


def _number(figure: float) -> str:
    """Format a number with three digits, or more if it has more before the point."""
    digits = 2 - math.floor(math.log10(abs(figure))) if figure else 0
    return f"{figure:,.{max(0, min(digits, 2))}f}"


def _timed(work: Callable[[], object], clock: Callable[[], float]) -> float:
    gc.collect()
    started = clock()
    work()
    return (clock() - started) * 1000
