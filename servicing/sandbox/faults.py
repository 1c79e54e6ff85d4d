"""Faults on demand, which make the next calls of an operation go wrong. Hides how an answer is changed."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Literal

from werkzeug import Response

from servicing.sandbox import envelopes
from servicing.sandbox.choices import Choices
from servicing.sandbox.wire import JSON, dumps, loads

ANY = "*"
MAX_DRIP_SECONDS = 120.0
"""The longest a dripping answer takes, in seconds."""

HTML_PAGE = b"<!doctype html><title>Service unavailable</title><h1>We are working on it</h1>"
PIECE_BYTES = 64 * 1024
PADDING = b"x" * 200

Pause = Callable[[float], object]


class Cut(Exception):
    """Close the connection without sending another byte."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A fault of one call: an answer in place of the real one, or changes to the real one.

    The operation is not performed if its answer is replaced (``status``, ``message``, ``html``, ``body``, ``size``) or
    with ``cut_before``; ``commit=True`` performs it anyway. The other faults change the real answer: the operation is
    performed first. For example, ``changes={"user_uuid": …}`` returns a loan of another owner.
    """

    status: int | None = None
    """Answer with this status instead, and ``message`` as the error."""
    message: str | None = None
    html: bool = False
    """Answer with a web page instead of JSON or a PDF."""
    body: Any = None
    """Answer with this instead: bytes and text unchanged, anything else as JSON."""
    size: int | None = None
    """Answer with this many bytes that begin like a PDF."""
    commit: bool = False
    """Perform the operation although its answer is replaced."""
    headers: Mapping[str, str] | None = None
    """Set these headers, for example ``Retry-After`` or ``Location``."""
    delay: float = 0
    """Wait this many seconds before the answer or the cut."""
    cut_before: bool = False
    """Close the connection without performing the operation."""
    cut_after_commit: bool = False
    """Close the connection after performing the operation."""
    truncate: bool = False
    """Announce the whole body, send half of it and close the connection."""
    changes: Mapping[str, JSON] | None = None
    """Merge these fields into the object of the answer, or into each object of its list, wrapped or not."""
    swapped: bool = False
    """Answer with the body of this operation's previous answer."""
    interim: tuple[int, ...] = ()
    """Send interim answers with these statuses (1xx) first."""
    trailers: Mapping[str, str] | None = None
    """Send the answer in chunks, with these trailers."""
    drip: float | None = None
    """Send one byte at a time, this many seconds apart, for at most two minutes."""
    drip_at: Literal["interim", "head", "sizes", "body", "trailers"] = "body"
    """The part of the answer that drips; ``sizes`` are the chunk sizes."""
    ignored_parameters: tuple[str, ...] = ()
    """Ignore these parameters of the query and the body: for example filters of the message list, or ``offset``, so
    that its first page repeats."""
    total: int | None = None
    """Report this total of the message list."""

    def answer(self, perform: Callable[[], Response], pause: Pause, choices: Choices) -> Response:
        """The faulty answer, or :class:`Cut`."""
        if self.cut_before:
            pause(self.delay)
            raise Cut
        response = self._replacement(choices)
        if response is None:
            response = perform()
        elif self.commit:
            perform()
        pause(self.delay)
        if self.cut_after_commit:
            raise Cut
        return self._change_answer(response, pause, choices)

    def _replacement(self, choices: Choices) -> Response | None:
        status = self.status or HTTPStatus.OK
        if self.html:
            return Response(HTML_PAGE, status, mimetype="text/html")
        if self.size is not None:
            response = Response(_fake_pdf(self.size), status, mimetype="application/pdf")
            response.content_length = self.size
            return response
        if self.body is not None:
            body = self.body if isinstance(self.body, bytes | str) else dumps(self.body)
            return Response(body, status, mimetype="application/json")
        if self.status is not None or self.message is not None:
            text = self.message or f"Simulated error {status}"
            body = envelopes.error_body(status, text, choices)
            return Response(dumps(body), status, mimetype="application/json")
        return None

    def head(self, head: bytes, pause: Pause) -> Iterator[bytes]:
        """The interim answers and the head of the answer, in the pieces to send."""
        before = b"".join(
            b"HTTP/1.1 %d Interim\r\nX-Interim: yes\r\n\r\n" % status for status in self.interim
        )
        yield from self._with_drip("interim", before, pause)
        yield from self._with_drip("head", head, pause)

    def _with_drip(self, part: str, data: bytes, pause: Pause) -> Iterator[bytes]:
        if self.drip is None or part != self.drip_at:
            return iter((data,))
        return _drip_bytes(data, self.drip, pause)

    def _chunks(self, body: bytes, pause: Pause) -> Iterator[bytes]:
        for piece in (body, b""):
            yield from self._with_drip("sizes", b"%x;%b\r\n" % (len(piece), PADDING), pause)
            yield piece + b"\r\n" if piece else b""
        trailers = {"X-Padding": PADDING.decode()} if self.trailers is None else self.trailers
        lines = "".join(f"{name}: {value}\r\n" for name, value in trailers.items())
        yield from self._with_drip("trailers", lines.encode() + b"\r\n", pause)

    def _change_answer(self, response: Response, pause: Pause, choices: Choices) -> Response:
        if self.changes is not None:
            changed = envelopes.merge_changes(loads(response.get_data()), self.changes, choices)
            response.set_data(dumps(changed))
        if self.total is not None:
            response.set_data(dumps(envelopes.replace_total(loads(response.get_data()), self.total)))
        if self.headers:
            response.headers.update(self.headers)
        if self.truncate:
            _stream(response, _cut_in_half(response.get_data()))
        if self.trailers is not None or (self.drip is not None and self.drip_at in ("sizes", "trailers")):
            response.response = self._chunks(response.get_data(), pause)
            response.headers["Transfer-Encoding"] = "chunked"
            del response.headers["Content-Length"]
        elif self.drip is not None and self.drip_at == "body":
            _stream(response, _drip_bytes(response.get_data(), self.drip, pause))
        return response


def _stream(response: Response, pieces: Iterator[bytes]) -> None:
    """Send the pieces, but announce the length of the whole body."""
    length = len(response.get_data())
    response.response = pieces
    response.content_length = length


def _cut_in_half(body: bytes) -> Iterator[bytes]:
    yield body[: len(body) // 2]
    raise Cut


def _drip_bytes(body: bytes, gap_seconds: float, pause: Pause) -> Iterator[bytes]:
    end = time.monotonic() + MAX_DRIP_SECONDS
    for index in range(len(body)):
        if time.monotonic() > end:
            raise Cut
        yield body[index : index + 1]
        pause(gap_seconds)


def _fake_pdf(size: int) -> Iterator[bytes]:
    head = b"%PDF-1.7\n"[:size]
    yield head
    left = size - len(head)
    while left > 0:
        yield bytes(min(PIECE_BYTES, left))
        left -= PIECE_BYTES


class Faults:
    """The faults that have not happened yet, in order."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pending: list[tuple[str, Fault, int | None]] = []

    def add(self, operation: str, fault: Fault, *, times: int | None) -> None:
        """Make the next ``times`` calls of an operation fail; None means all calls, ``*`` any operation."""
        with self._lock:
            self._pending.append((operation, fault, times))

    def take(self, operation: str) -> Fault | None:
        """The oldest fault for a call of this operation, or None; counts it as used."""
        with self._lock:
            for index, (name, fault, left) in enumerate(self._pending):
                if name in (operation, ANY):
                    rest = None if left is None else left - 1
                    self._pending[index : index + 1] = [] if rest == 0 else [(name, fault, rest)]
                    return fault
        return None

    def clear(self) -> None:
        """Remove all faults."""
        with self._lock:
            self._pending.clear()
