"""Renders PDFs in processes of their own, because WeasyPrint in a thread of a web server corrupts memory.

Hides the processes. Each is forked from one that has WeasyPrint and the documents' style loaded, does one piece of
work, and ends. It is killed when its time is over, and can't take more than its share of memory.
"""

import multiprocessing
import os
import resource
import shutil
import signal
import tempfile
import threading
import time
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from types import ModuleType
from typing import Any, NamedTuple

from django.conf import settings

Listener = Callable[[int], None]
"""Called with the number of pages, or of papers, laid out so far; an exception from it stops the rendering."""

# How long one document may take in the background, and how long a page waits to know its unprintable characters.
TIME_LIMIT_SECONDS = 300
CHARACTERS_SECONDS = 5
MAX_MEMORY_BYTES = 2 * 1024**3
# A joined PDF has at most this many pages, because all of them are in memory until it is written.
MAX_JOINED_PAGES = 150
# Debian's names of the libraries that rendering needs; docker/system-packages.txt has the same.
PACKAGES = "libpango-1.0-0 libpangoft2-1.0-0 libharfbuzz-subset0 fonts-dejavu-core"


class NotRendered(Exception):
    """The PDF could not be created; the message says why."""


class TookTooLong(NotRendered):
    """The PDF wasn't finished within its time."""

    def __init__(self) -> None:
        super().__init__("The document took too long to create.")


class Joined(NamedTuple):
    """Several papers as PDF."""

    file: bytes | None
    """All papers that could be rendered; ``None`` if they have too many pages for one PDF."""
    papers: Sequence[bytes | NotRendered | None]
    """What became of each paper: ``None`` if it is in the file, its own PDF, or why there is none.

    Without a file, these are only the papers up to the one with which the pages were too many.
    """


def _ignore(number: int) -> None:
    """Report progress to nobody."""


def render(html: str, *, seconds: float = TIME_LIMIT_SECONDS, on_page: Listener = _ignore) -> bytes:
    """Render a document as PDF; its links to styles and fonts are relative to the folder of static files."""
    file: bytes = _run_in_process("convert", html, seconds=seconds, listener=on_page)
    return file


def render_together(htmls: list[str], *, title: str, on_paper: Listener = _ignore) -> Joined:
    """Render several documents as one PDF, or the first ones as one PDF each if all have too many pages."""
    joined: Joined = _run_in_process(
        "convert_together", htmls, title, seconds=TIME_LIMIT_SECONDS, listener=on_paper
    )
    return joined


def find_unprintable(text: str) -> str:
    """The characters of a text that no font of the documents has, each once; raises :class:`NotRendered`."""
    unusual = list(dict.fromkeys(character for character in text if is_unusual(character)))
    if new := "".join(character for character in unusual if character not in _is_missing):
        missing = _run_in_process("find_missing", new, seconds=CHARACTERS_SECONDS, listener=_ignore)
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


def _run_in_process(name: str, *arguments: Any, seconds: float, listener: Listener) -> Any:
    """Call a function of :mod:`portal.documents.html_to_pdf` in a new process; waiting for a free one counts."""
    until = time.monotonic() + seconds
    free = _free_processes()
    if not free.acquire(timeout=seconds):
        raise TookTooLong
    try:
        # WeasyPrint writes fonts to it, and can't remove them when its process is killed.
        with tempfile.TemporaryDirectory(prefix="documents-", ignore_cleanup_errors=True) as folder:
            return _wait_for_process(folder, name, arguments, until - time.monotonic(), listener)
    except OSError as problem:
        raise NotRendered(f"No process or temporary file could be created: {problem.strerror}.") from None
    finally:
        free.release()


def _wait_for_process(folder: str, name: str, arguments: Any, seconds: float, listener: Listener) -> Any:
    receiver, sender = _context().Pipe(duplex=False)
    try:
        with receiver:
            with sender:
                process = _context().Process(
                    target=_work, args=(sender, folder, name, arguments), daemon=True
                )
                process.start()
            try:
                result = _receive(receiver, seconds, listener)
                process.join(1)  # It ends by itself.
                return result
            finally:
                if process.is_alive():
                    process.kill()
                    process.join()
    except EOFError:
        raise NotRendered("The document process stopped unexpectedly.") from None


def _receive(receiver: Connection, seconds: float, listener: Listener) -> Any:
    until = (
        time.monotonic() + seconds
    )  # The first process also starts what it is forked from, which isn't counted.
    while receiver.poll(max(0, until - time.monotonic())):
        received = receiver.recv()
        if isinstance(received, NotRendered):
            raise received
        if not isinstance(received, int):
            return received
        listener(received)
    raise TookTooLong


@cache
def _free_processes() -> threading.Semaphore:
    return threading.BoundedSemaphore(settings.DOCUMENT_PROCESSES)


@cache
def _context() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["__main__", "portal.documents.preload"])
    return context


# --- In the rendering process ---


def _work(pipe: Connection, folder: str, name: str, arguments: Any) -> None:
    """Call one function, and send its result."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    tempfile.tempdir = folder
    threading.Thread(target=_end_with_parent, args=[folder], daemon=True).start()
    try:
        pipe.send(getattr(_engine(), name)(*arguments, pipe.send))
    except NotRendered as reason:
        pipe.send(reason)
    except MemoryError:
        pipe.send(NotRendered("The document is too large."))


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
