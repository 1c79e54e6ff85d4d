"""Measures the private memory of a process, and how much it grows during some work."""

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

INTERVAL_SECONDS = 0.02

Result = TypeVar("Result")


def resident() -> float:
    """Return the private megabytes of this process, without mapped files, which the system can reclaim."""
    _, resident, shared, *_ = map(int, Path("/proc/self/statm").read_text().split())
    return (resident - shared) * os.sysconf("SC_PAGE_SIZE") / 2**20


def measure_growth(work: Callable[[], Result]) -> tuple[Result, float]:
    """Return the result of the work, and the most megabytes that it added."""
    before, done = resident(), threading.Event()
    samples = [before]

    def watch() -> None:
        while not done.wait(INTERVAL_SECONDS):
            samples.append(resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        result = work()
    finally:
        samples.append(resident())
        done.set()
        watcher.join()
    return result, max(samples) - before
