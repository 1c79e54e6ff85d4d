"""Accidents on demand: what goes wrong with the next calls of an operation. Hides how an answer is spoilt."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Literal

from werkzeug import Response

from servicing.sandbox.wire import JSON, dumps, loads

ANY = "*"
LONGEST_DRIP = 120.0
"""Seconds after which even a dripping answer is over."""

HTML_PAGE = b"<!doctype html><title>Service unavailable</title><h1>We are working on it</h1>"
PIECE = 64 * 1024
PADDING = b"x" * 200

Pause = Callable[[float], object]


class Cut(Exception):
    """Close the connection here, without another byte."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What happens instead of, or to, an answer.

    Nothing is done when the answer is made up (``status``, ``message``, ``html``, ``body``, ``size``) or
    cut before; ``commit=True`` does the operation first all the same. Everything else befalls the real answer:
    the operation is done before the caller waits. A loan of another owner is ``changes={"user_uuid": …}``.
    """

    status: int | None = None
    """Answer this status instead, with ``message`` as the error."""
    message: str | None = None
    html: bool = False
    """A web page instead of JSON (or of a PDF)."""
    body: Any = None
    """This instead: bytes and text as they are, anything else as JSON."""
    size: int | None = None
    """That many bytes which begin like a PDF."""
    commit: bool = False
    """Do the operation although the answer is made up."""
    headers: Mapping[str, str] | None = None
    """Set on the answer, such as ``Retry-After`` or ``Location``."""
    delay: float = 0
    """Seconds of silence before the answer or the cut."""
    cut_before: bool = False
    """Close the connection, nothing done."""
    cut_after_commit: bool = False
    """Close the connection, the operation done."""
    truncate: bool = False
    """Promise the whole body, send half of it, close."""
    changes: Mapping[str, JSON] | None = None
    """Merged into the answered object, or into every element of an answered list."""
    swapped: bool = False
    """The body of the last answer that this operation gave, in place of this call's own."""
    interim: tuple[int, ...] = ()
    """Interim answers of these statuses (1xx) before the answer."""
    trailers: Mapping[str, str] | None = None
    """The answer in chunks, with these fields behind it."""
    drip: float | None = None
    """One byte at a time, that many seconds apart, for two minutes at most."""
    drip_at: Literal["interim", "head", "sizes", "body", "trailers"] = "body"
    """Which part of the answer drips; ``sizes`` are those of its chunks."""
    ignored_parameters: tuple[str, ...] = ()
    """What the operation does not read of the query and the body. Without the days and the event of the message
    list its filters are ignored, without ``offset`` its first page repeats."""
    total: int | None = None
    """How many records the page says that its list has."""

    def answer(self, perform: Callable[[], Response], pause: Pause) -> Response:
        """The spoilt answer, or :class:`Cut`."""
        if self.cut_before:
            pause(self.delay)
            raise Cut
        response = self._made_up()
        if response is None:
            response = perform()
        elif self.commit:
            perform()
        pause(self.delay)
        if self.cut_after_commit:
            raise Cut
        return self._spoil(response, pause)

    def _made_up(self) -> Response | None:
        status = self.status or HTTPStatus.OK
        if self.html:
            return Response(HTML_PAGE, status, mimetype="text/html")
        if self.size is not None:
            response = Response(_filler(self.size), status, mimetype="application/pdf")
            response.content_length = self.size
            return response
        if self.body is not None:
            body = self.body if isinstance(self.body, bytes | str) else dumps(self.body)
            return Response(body, status, mimetype="application/json")
        if self.status is not None or self.message is not None:
            text = self.message or f"The service answers {status}"
            return Response(dumps({"message": text}), status, mimetype="application/json")
        return None

    def head(self, head: bytes, pause: Pause) -> Iterator[bytes]:
        """The head of the answer, and what comes before it."""
        before = b"".join(
            b"HTTP/1.1 %d Interim\r\nX-Interim: yes\r\n\r\n" % status for status in self.interim
        )
        yield from self._paced("interim", before, pause)
        yield from self._paced("head", head, pause)

    def _paced(self, part: str, data: bytes, pause: Pause) -> Iterator[bytes]:
        if self.drip is None or part != self.drip_at:
            return iter((data,))
        return _dripping(data, self.drip, pause)

    def _chunks(self, body: bytes, pause: Pause) -> Iterator[bytes]:
        for piece in (body, b""):
            yield from self._paced("sizes", b"%x;%b\r\n" % (len(piece), PADDING), pause)
            yield piece + b"\r\n" if piece else b""
        trailers = {"X-Padding": PADDING.decode()} if self.trailers is None else self.trailers
        lines = "".join(f"{name}: {value}\r\n" for name, value in trailers.items())
        yield from self._paced("trailers", lines.encode() + b"\r\n", pause)

    def _spoil(self, response: Response, pause: Pause) -> Response:
        if self.changes is not None:
            response.set_data(dumps(_changed(loads(response.get_data()), self.changes)))
        if self.total is not None:
            page = loads(response.get_data())
            response.set_data(dumps(page | {"pagination": page["pagination"] | {"total": self.total}}))
        if self.headers:
            response.headers.update(self.headers)
        if self.truncate:
            _stream(response, _half(response.get_data()))
        if self.trailers is not None or (self.drip is not None and self.drip_at in ("sizes", "trailers")):
            response.response = self._chunks(response.get_data(), pause)
            response.headers["Transfer-Encoding"] = "chunked"
            del response.headers["Content-Length"]
        elif self.drip is not None and self.drip_at == "body":
            _stream(response, _dripping(response.get_data(), self.drip, pause))
        return response


def _changed(answer: JSON, changes: Mapping[str, JSON]) -> JSON:
    """The answer with the changes in its object, or in each object of its list or page."""
    if isinstance(answer, list):
        return [_changed(element, changes) for element in answer]
    if "pagination" in answer:
        return answer | {"data": _changed(answer["data"], changes)}
    return answer | changes


def _stream(response: Response, pieces: Iterator[bytes]) -> None:
    """Send the pieces, but promise the length of the whole."""
    length = len(response.get_data())
    response.response = pieces
    response.content_length = length


def _half(body: bytes) -> Iterator[bytes]:
    yield body[: len(body) // 2]
    raise Cut


def _dripping(body: bytes, gap: float, pause: Pause) -> Iterator[bytes]:
    end = time.monotonic() + LONGEST_DRIP
    for index in range(len(body)):
        if time.monotonic() > end:
            raise Cut
        yield body[index : index + 1]
        pause(gap)


def _filler(size: int) -> Iterator[bytes]:
    head = b"%PDF-1.7\n"[:size]
    yield head
    left = size - len(head)
    while left > 0:
        yield bytes(min(PIECE, left))
        left -= PIECE


class Faults:
    """The accidents that wait, in order, for each operation."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[tuple[str, Fault, int | None]] = []

    def add(self, operation: str, fault: Fault, *, times: int | None) -> None:
        """Spoil the next ``times`` calls (None: all of them) of an operation, or of any with ``*``."""
        with self._lock:
            self._waiting.append((operation, fault, times))

    def take(self, operation: str) -> Fault | None:
        """The accident that befalls this call, if any; the oldest first."""
        with self._lock:
            for index, (name, fault, left) in enumerate(self._waiting):
                if name in (operation, ANY):
                    rest = None if left is None else left - 1
                    self._waiting[index : index + 1] = [] if rest == 0 else [(name, fault, rest)]
                    return fault
        return None

    def clear(self) -> None:
        """Let everything work again."""
        with self._lock:
            self._waiting.clear()
