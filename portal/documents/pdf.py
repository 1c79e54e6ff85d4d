"""Renders PDFs in separate processes, because WeasyPrint in a thread of a web server corrupts memory.

Hides the processes: each renders one document at a time. They start with the first documents and stay warm. One that
takes too long is killed alone; one that crashed or has grown over many documents is replaced.
"""

import gc
import multiprocessing
import os
import shutil
import signal
import tempfile
import threading
import time
import unicodedata
import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from multiprocessing.connection import Connection
from types import ModuleType
from typing import cast

from django.conf import settings

PageListener = Callable[[int], None]
"""Called with the number of pages laid out so far; an exception from it stops the rendering."""

DOCUMENTS_PER_PROCESS = 250
# How long one document may take, and how long a request waits for a free process.
TIME_LIMIT_SECONDS = 45
QUEUE_SECONDS = 15
# Allocations between two garbage collections; a document creates many objects and drops them at its end.
GC_THRESHOLD = 200_000
# Debian's names of the libraries that rendering needs; docker/system-packages.txt has the same.
PACKAGES = "libpango-1.0-0 libpangoft2-1.0-0 libharfbuzz-subset0 fonts-dejavu-core"


class NotRendered(Exception):
    """The PDF could not be created; the message says why."""


def render(
    html: str, *, time_limit: float = TIME_LIMIT_SECONDS, on_page: PageListener = lambda pages: None
) -> bytes:
    """Render a document as PDF; its links to styles and fonts are relative to the folder of static files."""
    return cast(bytes, _ask_process(html, time_limit, on_page))


def find_unprintable(text: str) -> str:
    """The characters of a text that no font of the documents has, each once; raises :class:`NotRendered`."""
    unusual = list(dict.fromkeys(character for character in text if is_unusual(character)))
    if new := "".join(character for character in unusual if character not in _is_missing):
        missing = cast(str, _ask_process(Characters(new), TIME_LIMIT_SECONDS, lambda pages: None))
        _is_missing.update({character: character in missing for character in new})
    return "".join(character for character in unusual if _is_missing[character])


def is_unusual(character: str) -> bool:
    """Whether a font may lack the character: it isn't Latin, usual punctuation, blank or invisible."""
    return not (
        character < "\u0180"
        or "\u2010" <= character <= "\u2027"
        or character == "\u2212"
        or unicodedata.category(character) in ("Cf", "Zl", "Zp", "Zs", "Cc")
    )


_is_missing: dict[str, bool] = {}


class Characters(str):
    """A text whose characters are looked up in the fonts, instead of a document to render."""


def _ask_process(request: str, time_limit: float, on_page: PageListener) -> bytes | str:
    free = _free_processes()
    if not free.acquire(timeout=QUEUE_SECONDS):
        raise NotRendered("Too many documents are being created right now.")
    until = time.monotonic() + time_limit
    try:
        for get_process in (_idle_process, RenderingProcess):  # If a process has died, a new one tries once.
            with suppress(EOFError):
                return get_process().render(request, until - time.monotonic(), on_page)
        raise NotRendered("The document process stopped unexpectedly.")
    finally:
        free.release()


@cache
def _free_processes() -> threading.Semaphore:
    return threading.BoundedSemaphore(settings.DOCUMENT_PROCESSES)


def _idle_process() -> "RenderingProcess":
    try:
        return _idle.pop()
    except IndexError:
        return RenderingProcess()


class RenderingProcess:
    """One process that renders, and this end of the pipe to it."""

    def __init__(self) -> None:
        self._documents = 0
        try:
            folder = tempfile.mkdtemp(prefix="documents-")
        except OSError as problem:
            raise NotRendered(f"No temporary files can be written: {problem.strerror}.") from None
        # WeasyPrint writes fonts to it, and can't remove them when its process is killed.
        self._remove_folder = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        context = multiprocessing.get_context("spawn")
        self._pipe, other_end = context.Pipe()
        with other_end:
            self._process = context.Process(target=serve, args=(other_end, folder), daemon=True)
            self._process.start()

    def render(self, html: str, time_limit: float, on_page: PageListener) -> bytes | str:
        """Render one document, or look up :class:`Characters`; raises ``EOFError`` if the process has died."""
        try:
            result = self._exchange(html, time_limit, on_page)
        except BaseException:
            self._end()
            raise
        self._documents += 1
        if self._documents < DOCUMENTS_PER_PROCESS:
            _idle.append(self)
        else:
            self._end()
        if isinstance(result, NotRendered):
            raise result
        return result

    def _exchange(self, html: str, time_limit: float, on_page: PageListener) -> bytes | str | NotRendered:
        # Killing the process ends both sending and receiving here, wherever it hangs.
        is_over_time = threading.Event()
        watchdog = threading.Timer(max(time_limit, 0), self._kill, [is_over_time])
        watchdog.start()
        try:
            self._pipe.send(html)
            while isinstance(received := self._pipe.recv(), int):
                on_page(received)
        except (EOFError, ConnectionError):
            if is_over_time.is_set():
                raise NotRendered("The document took too long to create.") from None
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
        self._remove_folder()


_idle: list[RenderingProcess] = []


# --- In the rendering process ---


def serve(pipe: Connection, folder: str) -> None:
    """Render documents from the pipe until its other end closes, with temporary files in ``folder``."""
    tempfile.tempdir = folder
    threading.Thread(target=_end_with_parent, args=[folder], daemon=True).start()
    warm_up()
    while True:
        try:
            html = pipe.recv()
        except EOFError:
            shutil.rmtree(folder, ignore_errors=True)
            return
        try:
            result: bytes | str | NotRendered = (
                find_missing_here(html) if isinstance(html, Characters) else render_here(html, pipe.send)
            )
        except NotRendered as reason:
            result = reason
        pipe.send(result)


def warm_up() -> None:
    """Load everything that rendering needs."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        render_here('<!doctype html><html lang="en"><title>Warm</title>')
    except NotRendered:  # The next request for a document reports it.
        pass
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD)


def render_here(html: str, on_page: PageListener = lambda pages: None) -> bytes:
    """Render one document in this process."""
    return cast(bytes, _engine().convert(html, on_page))


def find_missing_here(text: str) -> str:
    """The characters that no font has, looked up in this process."""
    return cast(str, _engine().find_missing(text))


def _engine() -> ModuleType:
    try:
        from portal.documents import html_to_pdf
    except OSError:  # Importing WeasyPrint without its libraries raises it.
        raise NotRendered(
            f"The document engine’s system libraries are missing. Install them with: "
            f"apt-get install {PACKAGES}."
        ) from None
    return html_to_pdf


def _end_with_parent(folder: str) -> None:
    parent = multiprocessing.parent_process()
    if parent:
        parent.join()
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(0)
