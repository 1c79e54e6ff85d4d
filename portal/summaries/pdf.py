"""Turns HTML into PDF bytes in processes of their own, because drawing in a thread of a web server corrupts its memory.

Hides the processes: each draws one document at a time. They start with the first documents and stay warm; one that
takes too long is ended alone, and one that crashed or has drawn enough documents to have grown is replaced.
"""

import gc
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from functools import cache, wraps
from multiprocessing.connection import Connection
from typing import ParamSpec, TypeVar

from django.conf import settings

P = ParamSpec("P")
R = TypeVar("R")
PageListener = Callable[[int], None]
"""Is given the number of pages laid out so far; what it raises ends the drawing."""

DOCUMENTS_PER_PROCESS = 250
# How long one document may take, and how long somebody waits for a free process before that.
TIME_LIMIT_SECONDS = 45
QUEUE_SECONDS = 15
# Objects between two runs of the garbage collector: a document makes many, and drops them only once it is drawn.
GARBAGE = 200_000
# Slots of the frame below which a document is drawn.
FRAME = 40_000
# What Debian calls the libraries without which nothing is drawn; docker/system-packages.txt has the same.
PACKAGES = "libpango-1.0-0 libpangoft2-1.0-0 libharfbuzz-subset0 fonts-dejavu-core"


class NotDrawn(Exception):
    """There is no PDF; the words say why."""


def render(
    html: str, *, time_limit: float = TIME_LIMIT_SECONDS, on_page: PageListener = lambda pages: None
) -> bytes:
    """The document as PDF; its links to style and fonts are relative to the folder of static files."""
    free = _free_processes()
    if not free.acquire(timeout=QUEUE_SECONDS):
        raise NotDrawn("Too many documents are being created right now.")
    try:
        return _draw_in_process(html, time_limit, on_page)
    finally:
        free.release()


@cache
def _free_processes() -> threading.Semaphore:
    return threading.BoundedSemaphore(settings.DOCUMENT_PROCESSES)


def _draw_in_process(html: str, time_limit: float, on_page: PageListener) -> bytes:
    """Draw in a warm process; if that one is gone, in a fresh one within the same time."""
    until = time.monotonic() + time_limit
    try:
        return _take_process().draw(html, time_limit, on_page)
    except EOFError:
        pass
    try:
        return DrawingProcess().draw(html, until - time.monotonic(), on_page)
    except EOFError:
        raise NotDrawn("The process that creates documents ended unexpectedly.") from None


def _take_process() -> "DrawingProcess":
    try:
        return _idle.pop()
    except IndexError:
        return DrawingProcess()


class DrawingProcess:
    """One process that draws, and this end of the pipe to it."""

    def __init__(self) -> None:
        self._documents = 0
        context = multiprocessing.get_context("spawn")
        self._pipe, other_end = context.Pipe()
        with other_end:
            self._process = context.Process(target=serve, args=(other_end,), daemon=True)
            self._process.start()

    def draw(self, html: str, time_limit: float, on_page: PageListener) -> bytes:
        """Draw one document and stay for the next; :class:`EOFError` if the process is gone."""
        try:
            drawn = self._exchange(html, time_limit, on_page)
        except BaseException:
            self._end()
            raise
        self._documents += 1
        if self._documents < DOCUMENTS_PER_PROCESS:
            _idle.append(self)
        else:
            self._end()
        if isinstance(drawn, NotDrawn):
            raise drawn
        return drawn

    def _exchange(self, html: str, time_limit: float, on_page: PageListener) -> bytes | NotDrawn:
        # Whatever the process hangs in, its end ends both sending and receiving here.
        is_over_time = threading.Event()
        watchdog = threading.Timer(max(time_limit, 0), self._kill, [is_over_time])
        watchdog.start()
        try:
            self._pipe.send(html)
            while isinstance(received := self._pipe.recv(), int):
                on_page(received)
        except (EOFError, ConnectionError):
            if is_over_time.is_set():
                raise NotDrawn("It took too long.") from None
            raise EOFError from None
        finally:
            watchdog.cancel()
        return received  # type: ignore[no-any-return]

    def _kill(self, is_over_time: threading.Event) -> None:
        is_over_time.set()
        self._process.kill()

    def _end(self) -> None:
        self._process.kill()
        self._process.join()
        self._pipe.close()


_idle: list[DrawingProcess] = []


# --- In the process that draws ---


def serve(pipe: Connection) -> None:
    """Draw what comes through the pipe until the other end is gone."""
    warm()
    while True:
        try:
            html = pipe.recv()
        except EOFError:
            return
        try:
            drawn: bytes | NotDrawn = draw(html, pipe.send)
        except NotDrawn as reason:
            drawn = reason
        pipe.send(drawn)


def warm() -> None:
    """Load what drawing needs; end with the server, however that ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        draw('<!doctype html><html lang="en"><title>Warm</title>')
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
def draw(html: str, on_page: PageListener = lambda pages: None) -> bytes:
    """Draw one document in this process."""
    try:
        from portal.summaries import drawing

        return drawing.draw(html, on_page)
    except OSError:  # how its import fails without them
        raise NotDrawn(
            f"This server lacks system libraries of the document engine. Install them with: "
            f"apt-get install {PACKAGES}."
        ) from None


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent:
        parent.join()
        os._exit(0)
