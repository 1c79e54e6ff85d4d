"""What a process has in memory for itself, and the most of it while something goes on."""

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

EACH = 0.02  # seconds

Told = TypeVar("Told")


def resident() -> float:
    """Megabytes of this process alone: what it maps of a file is the system's, which takes it back when it needs it."""
    _, resident, shared, *_ = map(int, Path("/proc/self/statm").read_text().split())
    return (resident - shared) * os.sysconf("SC_PAGE_SIZE") / 2**20


def watched(act: Callable[[], Told]) -> tuple[Told, float]:
    """What the act gives, and the most memory that was seen beyond what was in use before."""
    before, done = resident(), threading.Event()
    seen = [before]

    def watch() -> None:
        while not done.wait(EACH):
            seen.append(resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        given = act()
    finally:
        seen.append(resident())
        done.set()
        watcher.join()
    return given, max(seen) - before
