"""The HTTP server: threads, connections that stay open, and connections that are cut. Hides sockets.

Werkzeug's own handler closes every connection after one answer. The client keeps connections, so this one
reads each request to its end and leaves the connection open, unless the application raises
:class:`~servicing.sandbox.faults.Cut`.
"""

import io
import re
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from werkzeug.serving import ThreadedWSGIServer, WSGIRequestHandler

from servicing.sandbox.faults import Cut

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

LARGEST_BODY = 32 * 1024 * 1024
LONGEST_LINE = 8 * 1024
LONGEST_FAREWELL = 5.0
"""Seconds that one answer under way may take once the server is told to stop."""
HEADERS = "sandbox.headers"
"""Environ key of the headers as they came: WSGI's own form loses names with underscores."""
HEAD = "sandbox.head"
"""Environ key of what turns the head of the answer into the bytes to send; set by a fault."""


class Refused(Exception):
    """A body that is not read, and the status that says so."""

    def __init__(self, status: int) -> None:
        self.status = status


class Handler(WSGIRequestHandler):
    """One connection: request after request until either side closes it."""

    server: "Server"
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 120

    def setup(self) -> None:
        super().setup()
        self.server.opened(self.connection)

    def finish(self) -> None:
        self.server.closed(self.connection)
        super().finish()

    def run_wsgi(self) -> None:
        """Answer one request."""
        try:
            body = self._body()
            if body is None:
                return
            environ = self.make_environ()
            environ["wsgi.input"] = io.BytesIO(body)
            environ[HEADERS] = self.headers
            pieces = self.server.app(environ, self._start)
            self._send(environ.get(HEAD, _as_it_is), pieces)
        except (Cut, ConnectionError):
            self.close_connection = True

    def _body(self) -> bytes | None:
        """All of the body, so that the next request starts at its own first line; None if there is no answering."""
        length, coding = self.headers.get("Content-Length"), self.headers.get("Transfer-Encoding")
        try:
            if coding is None:
                return self._exactly(_number(length or "0"))
            # A length beside chunks is how a second request is smuggled past a proxy.
            if length is not None or coding.lower() != "chunked":
                raise Refused(400)
            return self._chunked()
        except EOFError:
            pass
        except Refused as refused:
            self.send_error(refused.status)
        self.close_connection = True
        return None

    def _chunked(self) -> bytes:
        body = bytearray()
        while size := _number(self._line().partition(b";")[0].strip().decode("latin-1"), base=16):
            body += self._exactly(size, LARGEST_BODY - len(body))
            if self._line():
                raise Refused(400)
        while self._line():
            pass  # Trailers mean nothing to this service.
        return bytes(body)

    def _exactly(self, size: int, largest: int = LARGEST_BODY) -> bytes:
        if size > largest:
            raise Refused(413)
        data = self.rfile.read(size)
        if len(data) < size:
            raise EOFError
        return data

    def _line(self) -> bytes:
        line = self.rfile.readline(LONGEST_LINE)
        if not line.endswith(b"\n"):
            raise EOFError
        return line.rstrip(b"\r\n")

    def _start(self, status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
        code, _, reason = status.partition(" ")
        self.log_request(code)
        lines = [
            f"HTTP/1.1 {code} {reason}",
            f"Date: {self.date_time_string(time.time() + self.server.clock_skew)}",
        ]
        lines += [f"{name}: {value}" for name, value in headers]
        self.close_connection |= ("connection", "close") in {
            (name.lower(), value.lower()) for name, value in headers
        }
        self._head = "\r\n".join([*lines, "", ""]).encode("latin-1")

    def _send(self, deliver: Callable[[bytes], Iterable[bytes]], pieces: Iterable[bytes]) -> None:
        """The answer as the application gives it, which includes its Content-Length."""
        try:
            for piece in deliver(self._head):
                self.wfile.write(piece)
            for piece in pieces:
                self.wfile.write(piece)
        finally:
            if hasattr(pieces, "close"):
                pieces.close()

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """A line for each request, only when asked for."""
        if self.server.logs:
            print(f"{self.log_date_time_string()} {self.command} {self.path} {code}", file=sys.stderr)

    def log(self, type: str, message: str, *args: Any) -> None:
        """Nothing else is worth a line: a caller that hangs up is everyday life."""


class Server(ThreadedWSGIServer):
    """Listens as soon as it is made; ``OSError`` when the address is not to be had."""

    def __init__(
        self, host: str, port: int, app: "WSGIApplication", *, log: bool = False, clock_skew: float = 0
    ) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.create_server((host, port), family=family, backlog=128) as listener:
            super().__init__(host, port, app, Handler, fd=listener.fileno())
        self.logs = log
        self.clock_skew = clock_skew
        self._lock = threading.Lock()
        self._stopping = False
        self._connections: dict[socket.socket, threading.Thread] = {}
        self._thread = threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True)

    def start(self) -> None:
        """Answer requests in threads of its own."""
        self._thread.start()

    def stop(self) -> None:
        """Take no more requests, let those under way finish, close every connection."""
        self.shutdown()
        self._thread.join()
        with self._lock:
            self._stopping = True
            open_now = list(self._connections.items())
        for connection, thread in open_now:
            _read_no_more(connection)
            thread.join(LONGEST_FAREWELL)

    def opened(self, connection: socket.socket) -> None:
        """Remember a connection and the thread that serves it."""
        with self._lock:
            self._connections[connection] = threading.current_thread()
            if self._stopping:
                _read_no_more(connection)

    def closed(self, connection: socket.socket) -> None:
        """Forget a connection."""
        with self._lock:
            del self._connections[connection]


def _as_it_is(head: bytes) -> Iterable[bytes]:
    return (head,)


def _number(text: str, base: int = 10) -> int:
    """What a length says; ``int`` alone would take signs, spaces and underscores too."""
    if not re.fullmatch("[0-9a-fA-F]{1,16}" if base == 16 else "[0-9]{1,16}", text):
        raise Refused(400 if base == 16 else 411)
    return int(text, base)


def _read_no_more(connection: socket.socket) -> None:
    """Let the thread that waits for the next request find the end instead."""
    try:
        connection.shutdown(socket.SHUT_RD)
    except OSError:
        pass  # It is closed already.
