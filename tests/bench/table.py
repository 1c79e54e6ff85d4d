"""The form of every benchmark: rows of ours beside a reference, and the table they make."""

import gc
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple


class Row(NamedTuple):
    """One figure of ours beside its reference. `ratio` is what `limit` bounds."""

    name: str
    ours: str
    reference: str
    ratio: float
    limit: float
    met: bool


def compared(name: str, ours: float, reference: float, limit: float, *, unit: str = "ms") -> Row:
    """A row that is met as long as ours is at most `limit` times the reference."""
    ratio = ours / reference
    return Row(name, f"{ours:.2f} {unit}", f"{reference:.2f} {unit}", ratio, limit, ratio <= limit)


def bounded(name: str, ours: float, reference: float, limit: float, *, unit: str = "ms") -> Row:
    """A row that is met as long as ours is at most `limit` more than the reference."""
    extra = ours - reference
    return Row(name, f"{ours:.2f} {unit}", f"{reference:.2f} {unit}", extra, limit, extra <= limit)


def best_ms(work: Callable[[], object], *, rounds: int = 30) -> float:
    """The shortest of several runs in milliseconds: what the work costs when nothing else disturbs it."""
    return min(_timed(work) for _ in range(rounds)) * 1000


def alternating_ms(*works: Callable[[], object], rounds: int = 30) -> list[float]:
    """The shortest runs of several pieces of work, taken in turns so that all meet the same machine."""
    runs = [[_timed(work) for work in works] for _ in range(rounds)]
    return [min(times) * 1000 for times in zip(*runs, strict=True)]


def markdown(rows: Iterable[Row]) -> str:
    """The rows as a Markdown table."""
    head = ["| what | ours | reference | figure | limit | met |", "|---|---:|---:|---:|---:|---|"]
    lines = [
        f"| {row.name} | {row.ours} | {row.reference} | {row.ratio:.2f} | {row.limit:g} | "
        f"{'yes' if row.met else '**no**'} |"
        for row in rows
    ]
    return "\n".join(head + lines)


def _timed(work: Callable[[], object]) -> float:
    gc.collect()
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
