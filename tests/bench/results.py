"""Saves the results of benchmarks as JSON and shows them in README.md.

A run of some parts replaces only their results; each part has its own date and machine.
"""

import json
import os
import platform
import re
import sqlite3
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.bench.table import Row, markdown

ROOT = Path(__file__).resolve().parents[2]
RESULTS, BASELINE = (Path(__file__).with_name(f"{name}.json") for name in ("results", "baseline"))
README, MARKS = Path(__file__).with_name("README.md"), ("<!-- made by make bench -->\n", "<!-- end -->\n")
Found = dict[str, dict[str, Any]]


def measure_part(name: str) -> list[Row]:
    """Run one part; return its rows."""
    rows: list[Row] = import_module(f"tests.bench.bench_{name}").rows()
    return rows


def describe_part(rows: list[Row], began: datetime, load: float, sizes: Mapping[str, str]) -> dict[str, Any]:
    """Return the results of one part with the date, load and machine."""
    return {
        "date": f"{began:%Y-%m-%d %H:%M} UTC",
        "minutes": round((datetime.now(UTC) - began).total_seconds() / 60, 1),
        "load before": round(load, 1),
        "sizes": dict(sizes),
        "machine": machine(),
        "rows": [row._asdict() for row in rows],
    }


def machine() -> dict[str, Any]:
    """Return the machine and its software versions."""
    memory = re.findall(r"MemTotal: +(\d+) kB", Path("/proc/meminfo").read_text())
    model = re.findall(r"model name\s*: (.+)", Path("/proc/cpuinfo").read_text())
    return {
        "processor": model[0] if model else platform.machine(),
        "cores": os.cpu_count(),
        "memory": f"{int(memory[0]) / 2**20:.0f} GB",
        "kernel": platform.release(),
        "Python": platform.python_version(),
        "SQLite": sqlite3.sqlite_version,
        "PostgreSQL": _postgres(),
    }


def _postgres() -> str:
    """Return the version of the server that ``docker/postgres.py`` starts."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    output = subprocess.run([found[-1], "--version"], capture_output=True, text=True).stdout if found else ""
    version = re.search(r"[\d.]+", output)
    return version[0] if version else "none"


def save(found: Found, file: Path = RESULTS) -> Found:
    """Replace the saved results of these parts; return all results."""
    known: Found = json.loads(file.read_text()) if file.exists() else {}
    known = dict(sorted((known | found).items()))
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n")
    return known


def save_baseline(ratios: Mapping[str, float]) -> None:
    """Save the ratios that later runs are compared with."""
    known = json.loads(BASELINE.read_text()) if BASELINE.exists() else {}
    BASELINE.write_text(
        json.dumps(dict(sorted({**known, **ratios}.items())), indent=1, ensure_ascii=False) + "\n"
    )


def above_baseline(ratios: Mapping[str, float], factor: float) -> list[str]:
    """Return the ratios that grew too much or have no baseline, which a renamed row loses."""
    known = json.loads(BASELINE.read_text()) if BASELINE.exists() else {}
    return [
        f"{name}: {ratio} ×, baseline {known.get(name, 'missing')}"
        for name, ratio in ratios.items()
        if name not in known or ratio > known[name] * factor
    ]


def update_readme(known: Found) -> None:
    """Write the tables between the marks in README.md."""
    head, rest = README.read_text().split(MARKS[0])
    _, tail = rest.split(MARKS[1])
    README.write_text(f"{head}{MARKS[0]}\n{tables(known)}\n{MARKS[1]}{tail}")


def tables(known: Found) -> str:
    """Return a collapsible table for each part, with its date and machine."""
    return "\n\n".join(_table(name, one) for name, one in known.items())


def _table(name: str, one: dict[str, Any]) -> str:
    rows = [Row(**row) for row in one["rows"]]
    bound = [row for row in rows if row.limit is not None]
    met = f"{sum(row.is_met for row in bound)} of {len(bound)} limits met" if bound else "no limits"
    return (
        f"<details><summary><b>{name}</b>, {one['date']}: {met}</summary>\n\n"
        f"{_circumstances(one)}\n\n{markdown(rows)}\n\n</details>"
    )


def _circumstances(one: dict[str, Any]) -> str:
    machine, sizes = one["machine"], ", ".join(f"{key}={value}" for key, value in one["sizes"].items())
    versions = ", ".join(f"{key} {machine[key]}" for key in ("Python", "SQLite", "PostgreSQL"))
    return (
        f"{machine['cores']} cores ({machine['processor']}), {machine['memory']}, Linux {machine['kernel']}, "
        f"{versions}; it took {one['minutes']} minutes, load before {one['load before']}."
        f"{f' Smaller than it should be: {sizes}.' if sizes else ''}"
    )
