"""Runs every benchmark of this folder and prints one table: `python -m tests.bench [part of a name …]`."""

import importlib
import sys
from pathlib import Path

from tests.bench.table import Row, markdown


def main(wanted: list[str]) -> int:
    rows: list[Row] = []
    for path in sorted(Path(__file__).parent.glob("bench_*.py")):
        if not wanted or any(word in path.stem for word in wanted):
            rows += importlib.import_module(f"tests.bench.{path.stem}").rows()
    print(markdown(rows))  # noqa: T201 - the table is what this program is for.
    return 0 if all(row.met for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
