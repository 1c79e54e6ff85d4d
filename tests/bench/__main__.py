"""Runs benchmarks, each part in a process of its own; prints their tables, keeps and shows them.

    python -m tests.bench [--quick] [part of a name …]

A part that meets a database meets the one of DATABASE_URL, where that is given. What is found stands in results.json
beside this, and in the README. With ``--quick`` all is small: the tables say so, and only get into .bench/.
"""

import multiprocessing
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

from tests.bench import results

SIZES = {
    "BENCH_BORROWERS": "5000",
    "BENCH_MESSAGES": "20000",
    "BENCH_ENTRIES": "20000",
    "BENCH_SUMMARIES": "20",
    "BENCH_ROUNDS": "2",
}
"""What can be made smaller, and how small it is with ``--quick``."""


def main(arguments: list[str]) -> int:
    wanted = [word for word in arguments if not word.startswith("--")]
    is_quick = "--quick" in arguments
    if is_quick:
        os.environ |= SIZES
    smaller = {name: os.environ[name] for name in SIZES if name in os.environ}
    found: results.Found = {}
    for path in sorted(Path(__file__).parent.glob("bench_*.py")):
        name = path.stem.removeprefix("bench_")
        if not wanted or any(word in name for word in wanted):
            began, load = datetime.now(UTC), os.getloadavg()[0]
            with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as alone:
                rows = alone.submit(results.measured, name).result()
            title = (
                f"{name}, PostgreSQL" if os.environ.get("DATABASE_URL", "").startswith("postgres") else name
            )
            found[title] = results.part(rows, began, load, smaller)
            print(results.tables({title: found[title]}), end="\n\n", flush=True)  # noqa: T201 - what it is for.
    if smaller:
        results.keep(found, results.ROOT / ".bench" / "smaller.json")
    else:
        results.show(results.keep(found))
    return 0 if all(row["is_met"] for one in found.values() for row in one["rows"]) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
