"""Runs benchmarks, each part in its own process; prints their tables and saves them.

    python -m tests.bench [--quick] [--baseline] [part of a name …]

Parts with a database use DATABASE_URL, if set. Figures are saved in results.json and shown in README.md, both in this
folder. ``--quick`` runs only the parts in :data:`QUICK`, with less data, and compares their ratios with baseline.json.
It fails if a ratio has no baseline, or has grown by a fifth in two runs: the machine may have been busy during the
first. With ``--baseline`` it saves the ratios there instead.
"""

import multiprocessing
import os
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.bench import results
from tests.bench.table import TIMES

SIZES = {
    "BENCH_BORROWERS": "1000",
    "BENCH_MESSAGES": "5000",
    "BENCH_ADDRESSES": "5",
    "BENCH_ENTRIES": "10000",
    "BENCH_SUMMARIES": "4",
    "BENCH_DELAYS": "0,0.1",
    "BENCH_SECONDS": "1",
    "BENCH_ROUNDS": "7",
}
"""The sizes of ``--quick``."""
QUICK = ["cpu", "servicing"]
GROWTH = 1.2
"""How much a ratio may grow over its baseline."""


def main(arguments: list[str]) -> int:
    wanted = [word for word in arguments if not word.startswith("--")]
    is_quick = "--quick" in arguments
    if is_quick:
        os.environ |= SIZES
        wanted = wanted or QUICK
    sizes = {name: os.environ[name] for name in SIZES if name in os.environ}
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        os.environ["BENCH_DESK"] = str(Path(folder) / "desk")
        found = measure(wanted, sizes)
        ratios = ratios_in(found)
        if is_quick and "--baseline" not in arguments and results.above_baseline(ratios, GROWTH):
            again = ratios_in(measure(wanted, sizes))
            ratios = {name: min(ratio, again[name]) for name, ratio in ratios.items()}
    if sizes:
        results.save(found, results.ROOT / ".bench" / "smaller.json")
    else:
        results.update_readme(results.save(found))
    missed = [row["name"] for row in rows_in(found) if not row["is_met"]]
    if is_quick:
        if "--baseline" in arguments:
            results.save_baseline(ratios)
        missed = results.above_baseline(ratios, GROWTH)
    fine = "No ratio grew beyond its baseline." if is_quick else "Every limit is met."
    print("\n".join(["Missed:", *missed]) if missed else fine)  # noqa: T201
    return 1 if missed else 0


def rows_in(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [row for one in found.values() for row in one["rows"]]


def ratios_in(found: dict[str, Any]) -> dict[str, float]:
    """Return the ratio of each row that has one."""
    return {row["name"]: round(row["figure"], 2) for row in rows_in(found) if row["unit"] == TIMES}


def parts(wanted: list[str]) -> list[str]:
    """Return all parts, or those whose names contain one of the words."""
    names = sorted(path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py"))
    return [name for name in names if not wanted or any(word in name for word in wanted)]


def measure(wanted: list[str], sizes: dict[str, str]) -> dict[str, Any]:
    return dict(part(name, sizes) for name in parts(wanted))


def part(name: str, sizes: dict[str, str]) -> tuple[str, dict[str, Any]]:
    """Run one part in its own process and print its table."""
    began, load = datetime.now(UTC), os.getloadavg()[0]
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
        rows = process.submit(results.measure_part, name).result()
    on_postgres = os.environ.get("DATABASE_URL", "").startswith("postgres")
    title = f"{name}, PostgreSQL" if on_postgres else name
    found = results.describe_part(rows, began, load, sizes)
    print(results.tables({title: found}), end="\n\n", flush=True)  # noqa: T201 - a command line tool
    return title, found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
