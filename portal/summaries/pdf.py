"""Turns HTML into PDF bytes in a process of its own, because drawing in a thread of a web server corrupts its memory.

Hides the workers: started by the first documents and kept warm, stopped when one takes too long, replaced after a crash
and after enough documents to have grown. (The executor's own ``max_tasks_per_child`` never ends on Python 3.11 once
tasks queue up, so the pool is replaced from here.)
"""

import gc
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import wraps
from typing import ParamSpec, TypeVar

from django.conf import settings

P = ParamSpec("P")
R = TypeVar("R")
DOCUMENTS = 250
# Seconds that one document may take, and that somebody waits for it and for those before it.
TIME_LIMIT = 45
PATIENCE = 60
# Objects between two looks for garbage: a document makes many, and drops them only once it is drawn.
GARBAGE = 200_000
# Slots of the frame below which a document is drawn.
FRAME = 40_000
# What Debian calls the libraries without which nothing is drawn; docker/system-packages.txt has the same.
PACKAGES = "libpango-1.0-0 libpangoft2-1.0-0 libharfbuzz-subset0 fonts-dejavu-core"


class NotDrawn(Exception):
    """There is no PDF; the words say why."""


def render(html: str, *, time_limit: int = TIME_LIMIT, again: bool = True) -> bytes:
    """The document as PDF; its links to style and fonts are relative to the folder of static files."""
    return begin(html, time_limit=time_limit, again=again)()


def begin(html: str, *, time_limit: int = TIME_LIMIT, again: bool = True) -> Callable[[], bytes]:
    """Let a document be drawn beside other work; what this gives back waits for the bytes."""
    started = time.monotonic()
    pool, drawing = _press.submit(html, time_limit)

    def result() -> bytes:
        try:
            return drawing.result(timeout=PATIENCE)
        except BrokenProcessPool:
            _press.forget(pool)
            if again and time.monotonic() - started < time_limit:  # another document may have ended it
                return render(html, time_limit=time_limit, again=False)
            raise NotDrawn("It took too long, or its process ended; a new one takes its place.") from None
        except TimeoutError:
            drawing.cancel()
            raise NotDrawn("Too many documents are being drawn right now.") from None

    return result


class _Press:
    """The pool of workers, and how many documents it has taken."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pool: ProcessPoolExecutor | None = None
        self._taken = 0

    def submit(self, html: str, time_limit: int) -> tuple[ProcessPoolExecutor, Future[bytes]]:
        with self._lock:
            if self._pool is None or self._taken >= DOCUMENTS:
                self._pool = self._fresh()
            self._taken += 1
            try:
                return self._pool, self._pool.submit(draw, html, time_limit)
            except BrokenProcessPool:  # it ended while nobody waited
                self._pool = self._fresh()
                return self._pool, self._pool.submit(draw, html, time_limit)

    def forget(self, pool: ProcessPoolExecutor) -> None:
        with self._lock:
            if self._pool is pool:
                self._pool = None

    def _fresh(self) -> ProcessPoolExecutor:
        if self._pool:
            self._pool.shutdown(wait=False)  # what it has taken, it still draws
        self._taken = 0
        return ProcessPoolExecutor(
            settings.DOCUMENT_PROCESSES, mp_context=multiprocessing.get_context("spawn"), initializer=warm
        )


_press = _Press()


# --- In the worker ---


def warm() -> None:
    """Load what drawing needs; end with the server, however that ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        draw('<!doctype html><html lang="en"><title>Warm</title>', TIME_LIMIT)
    except NotDrawn:  # said to whoever wants a document
        pass
    gc.freeze()
    gc.set_threshold(GARBAGE)


def in_one_piece(work: Callable[P, R]) -> Callable[P, R]:
    """Give a function a frame so large that all frames below it fit into the piece of memory that Python takes for it.

    Frames lie in small pieces otherwise, and where one ends in the middle of the layout, each call across its end has
    the system map memory and take it back: thousands of times in a document, for a tenth of its time.
    """

    def roomy(*args: P.args, **kwargs: P.kwargs) -> R:
        return work(*args, **kwargs)

    roomy.__code__ = roomy.__code__.replace(co_stacksize=FRAME)
    return wraps(work)(roomy)


@in_one_piece
def draw(html: str, time_limit: int) -> bytes:
    """Draw one document, or be ended by the alarm: whatever it hangs in, the system ends it."""
    signal.alarm(time_limit)
    try:
        from portal.summaries import drawing

        return drawing.draw(html)
    except OSError:  # how its import fails without them
        raise NotDrawn(
            f"This server lacks system libraries of the document engine. Install them with: "
            f"apt-get install {PACKAGES}."
        ) from None
    finally:
        signal.alarm(0)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent:
        parent.join()
        os._exit(0)
